//! Requests to a server: signed, sent, and tried again.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use fd_messages::Said;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use quick_xml::de::from_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use tokio::time::sleep;

use crate::error::S3Error;
use crate::patience::{Outgoing, answered, whole};
use crate::settings::BucketSettings;
use crate::texts;

/// Most bytes of a page of a listing, which has at most 1,000 keys.
pub(crate) const LONGEST_PAGE: usize = 16 << 20;
/// Most bytes of an answer that tells what has become of an object: as many may come at a time as
/// objects are on their way.
pub(crate) const LONGEST_WORD: usize = 64 << 10;
/// Pauses before a request is tried again: the first and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Longest time to set up a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept.
const IDLE_LIMIT: Duration = Duration::from_secs(15);
/// Most bytes of a connection's buffer.
const CONNECTION_BUFFER: usize = 128 << 10;

/// A bucket that can be asked.
pub(crate) struct Client {
    http: HttpClient<HttpsConnector<HttpConnector>, Outgoing>,
    credentials: Credentials,
    settings: BucketSettings,
    /// The address of the bucket, without a slash at its end.
    base: String,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// `None`: the bucket.
    pub(crate) key: Option<&'a [u8]>,
    /// What stands behind the question mark, encoded.
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Bytes,
}

impl<'a> Ask<'a> {
    /// Asks for an object, or for the bucket.
    pub(crate) fn get(key: Option<&'a [u8]>) -> Self {
        Self { method: Method::GET, key, query: String::new(), headers: Vec::new(), body: Bytes::new() }
    }
}

impl Client {
    /// A client of this bucket. The error is a message's end.
    pub(crate) fn new(settings: &BucketSettings) -> Result<Self, String> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_LIMIT.min(settings.timeout())));
        connector.set_nodelay(true);
        let builder = HttpsConnectorBuilder::new();
        let trusts = |roots| ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let tls = match &settings.ca_file {
            // A host without any certificates can have a server without TLS.
            None if settings.endpoint().starts_with("http:") => builder.with_tls_config(trusts(RootCertStore::empty())),
            None => builder.with_native_roots().map_err(|error| texts::no_certificates(&error.to_string()))?,
            Some(file) => {
                let mut roots = RootCertStore::empty();
                let found = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string());
                let added = found.and_then(|certificates| {
                    certificates.flatten().try_for_each(|certificate| roots.add(certificate)).map_err(|e| e.to_string())
                });
                added.map_err(|error| texts::ca_file(file, &error))?;
                if roots.is_empty() {
                    return Err(texts::ca_file(file, texts::NO_CERTIFICATE));
                }
                builder.with_tls_config(trusts(roots))
            }
        };
        let connector = tls.https_or_http().enable_http1().wrap_connector(connector);
        let http = HttpClient::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(CONNECTION_BUFFER)
            .build(connector);
        let BucketSettings { access_key, secret_key, session_token, .. } = settings;
        let credentials = Credentials::new(access_key, secret_key, session_token.clone(), None, "bucket settings");
        let endpoint = settings.endpoint();
        let base = match endpoint.split_once("://") {
            Some((scheme, host)) if !settings.path_style => format!("{scheme}://{}.{host}", settings.bucket),
            _ => format!("{endpoint}/{}", settings.bucket),
        };
        Ok(Self { http, credentials, settings: settings.clone(), base })
    }

    /// What was set for the bucket.
    pub(crate) fn settings(&self) -> &BucketSettings {
        &self.settings
    }

    /// The bucket's address.
    pub(crate) fn address(&self) -> &str {
        &self.base
    }

    /// Where restored objects go: what all their addresses begin with.
    pub(crate) fn place(&self) -> String {
        format!("{}/{}", self.base, self.settings.restore_prefix)
    }

    /// How long the server may send nothing.
    pub(crate) fn patience(&self) -> Duration {
        self.settings.timeout()
    }

    /// Asks once.
    pub(crate) async fn ask(&self, ask: &Ask<'_>) -> Result<Response<Incoming>, S3Error> {
        let request = self.request(ask)?;
        let taken = request.body().taken();
        let answer = answered(self.http.request(request), self.patience(), &taken).await?;
        let answer = answer.map_err(|error| S3Error::connection(&causes(&error)))?;
        let status = answer.status().as_u16();
        if matches!(status, 200..=299) {
            return Ok(answer);
        }
        let body = self.body(answer, LONGEST_WORD).await.unwrap_or_default();
        let said: Refusal = from_str(&String::from_utf8_lossy(&body)).unwrap_or_default();
        Err(said.with(status))
    }

    /// Asks until it is answered, or the tries are used up.
    pub(crate) async fn ask_again(&self, ask: &Ask<'_>) -> Result<Response<Incoming>, S3Error> {
        let mut tries = Tries::new(self.settings.retries);
        loop {
            match self.ask(ask).await {
                Err(error) => tries.pause(error).await?,
                answered => return answered,
            }
        }
    }

    /// Asks until there is a whole answer of at most so many bytes, or the tries are used up.
    pub(crate) async fn whole_answer(&self, ask: &Ask<'_>, most: usize) -> Result<Bytes, S3Error> {
        let mut tries = Tries::new(self.settings.retries);
        loop {
            match self.whole_once(ask, most).await {
                Err(error) => tries.pause(error).await?,
                answered => return answered,
            }
        }
    }

    /// The same, asked once.
    pub(crate) async fn whole_once(&self, ask: &Ask<'_>, most: usize) -> Result<Bytes, S3Error> {
        self.body(self.ask(ask).await?, most).await
    }

    /// The body of an answer that is no object, of at most so many bytes.
    async fn body(&self, answer: Response<Incoming>, most: usize) -> Result<Bytes, S3Error> {
        whole(answer.into_body(), most, self.patience()).await
    }

    fn request(&self, ask: &Ask<'_>) -> Result<Request<Outgoing>, S3Error> {
        let wrong = |error: &dyn std::fmt::Display| S3Error::nonsense(error);
        let mut address = self.base.clone();
        address.push('/');
        address.push_str(&ask.key.map(encode_path).unwrap_or_default());
        if !ask.query.is_empty() {
            address.push('?');
            address.push_str(&ask.query);
        }
        let mut request = Request::builder().method(ask.method.clone()).uri(&address);
        for (name, value) in &ask.headers {
            request = request.header(name, value.as_slice());
        }
        let mut request = request.body(Outgoing::new(ask.body.clone())).map_err(|error| wrong(&error))?;
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let identity = self.credentials.clone().into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.settings.region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .map_err(|error| wrong(&error))?
            .into();
        // What is no text is not signed.
        let headers = request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let signable =
            SignableRequest::new(ask.method.as_str(), address.as_str(), headers, SignableBody::Bytes(&ask.body));
        let signed = sign(signable.map_err(|error| wrong(&error))?, &params).map_err(|error| wrong(&error))?;
        signed.into_parts().0.apply_to_request_http1x(&mut request);
        if ask.body.is_empty() && [Method::PUT, Method::POST].contains(&ask.method) {
            // It is not added where there is no body, and Amazon's servers refuse what has none.
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(request)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

/// An answer that says what is wrong.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Refusal {
    #[serde(rename = "Code")]
    code: String,
    #[serde(rename = "Message")]
    message: String,
}

impl Refusal {
    /// The error that it is, with this status.
    pub(crate) fn with(&self, status: u16) -> S3Error {
        S3Error::Refused { status, code: Said::new(&self.code), message: Said::new(&self.message) }
    }
}

/// How often something may be tried again.
#[derive(Debug)]
pub(crate) struct Tries {
    most: u32,
    left: u32,
}

impl Tries {
    pub(crate) const fn new(most: u32) -> Self {
        Self { most, left: most }
    }

    /// There was progress: all tries are there again.
    pub(crate) const fn renew(&mut self) {
        self.left = self.most;
    }

    /// Waits before the next try; the error if there is none, or if it would not help.
    pub(crate) async fn pause(&mut self, error: S3Error) -> Result<(), S3Error> {
        self.pause_if(error.may_pass(), error).await
    }

    /// The same where it is known whether another try helps.
    pub(crate) async fn pause_if(&mut self, helps: bool, error: S3Error) -> Result<(), S3Error> {
        if self.left == 0 || !helps {
            return Err(error);
        }
        let (first, longest) = PAUSES;
        let used = self.most - self.left;
        self.left -= 1;
        let pause = first.saturating_mul(1 << used.min(16)).min(longest);
        // Many requests that have failed together do not come back together.
        let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
        sleep(pause.mul_f64(0.5 + f64::from(nanos % 1000) / 2000.0)).await;
        Ok(())
    }
}

/// A key as it stands in an address.
pub(crate) fn encode_path(key: &[u8]) -> String {
    encode(key, b"/")
}

/// A value as it stands behind the question mark.
pub(crate) fn encode_value(value: &[u8]) -> String {
    encode(value, b"")
}

fn encode(bytes: &[u8], also: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || also.contains(byte) {
            text.push(char::from(*byte));
        } else {
            // A text takes whatever is written to it.
            let _written = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// An error with its causes, the last of which says most.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
