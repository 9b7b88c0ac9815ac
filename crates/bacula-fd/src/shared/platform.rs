//! What kind of host this is, as Director and operator see it.

use std::fs;

/// Host, distribution and release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Platform {
    host: String,
    distribution: String,
    release: String,
}

/// Memory of this process, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Memory {
    /// Data segment.
    pub data: u64,
    /// In RAM now.
    pub resident: u64,
    /// Most that was ever in RAM.
    pub peak_resident: u64,
}

impl Platform {
    /// Looks at `/etc/os-release`; what it does not say is `unknown`.
    pub(crate) fn detect() -> Self {
        Self::from_os_release(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    fn from_os_release(text: &str) -> Self {
        let value = |key: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            found
                .map(|value| value.trim_matches(|c| c == '"' || c == '\'').to_owned())
                .filter(|value| !value.is_empty())
        };
        Self {
            host: format!("{}-pc-linux-gnu", std::env::consts::ARCH),
            distribution: value("ID").unwrap_or_else(|| "unknown".to_owned()),
            release: value("VERSION_CODENAME").or_else(|| value("VERSION_ID")).unwrap_or_else(|| "unknown".to_owned()),
        }
    }

    /// For the reply to `JobId=`: `x86_64-pc-linux-gnu,debian,trixie`.
    pub(crate) fn with_commas(&self) -> String {
        format!("{},{},{}", self.host, self.distribution, self.release)
    }

    /// For plugins: the distribution and its release.
    pub(crate) fn distribution(&self) -> String {
        format!("{} {}", self.distribution, self.release)
    }

    /// For the status header: the same with blanks.
    pub(crate) fn spaced(&self) -> String {
        format!("{} {} {}", self.host, self.distribution, self.release)
    }

    /// The library that encrypts the connections.
    pub(crate) fn crypto() -> &'static str {
        openssl::version::version()
    }

    /// Memory of this process; zeros where `/proc` can't be read.
    pub(crate) fn memory() -> Memory {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kilobytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
        };
        Memory {
            data: kilobytes("VmData").saturating_mul(1024),
            resident: kilobytes("VmRSS").saturating_mul(1024),
            peak_resident: kilobytes("VmHWM").saturating_mul(1024),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_with_and_without_quotes() {
        let platform = Platform::from_os_release("NAME=\"Debian\"\nVERSION_CODENAME=trixie\nID=debian\n");
        assert!(platform.with_commas().ends_with(",debian,trixie"));
        let platform = Platform::from_os_release("ID=\"rocky\"\nVERSION_ID=\"9.4\"\n");
        assert!(platform.spaced().ends_with(" rocky 9.4"));
        assert!(Platform::from_os_release("").with_commas().ends_with(",unknown,unknown"));
    }

    #[test]
    fn this_process_uses_memory() {
        let memory = Platform::memory();
        assert!(memory.resident > 0 && memory.peak_resident >= memory.resident);
    }
}
