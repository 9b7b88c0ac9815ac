//! Databases that are saved through `bpipe` and restored into new ones, with the
//! `FileSet`s of docs/plugins.md as they stand there.
//!
//! The stock daemon runs in a root that has no database.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, ONLY_OURS, PATIENCE, Process, Result, argv, wait_for};
use nix::unistd::{User, geteuid};

/// The FileSet of this name in docs/plugins.md.
fn documented(name: &str) -> FileSet {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs").join("plugins.md");
    let page = fs::read_to_string(page).unwrap();
    let named = format!("Name = \"{name}\"");
    let block = page.split("```\n").find(|part| part.starts_with("FileSet {") && part.contains(&named)).unwrap();
    let lines = block.lines().map(str::trim).filter(|line| *line != "FileSet {" && *line != named);
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    // The brace that ends the FileSet.
    lines.pop();
    FileSet { name: name.to_owned(), lines }
}

/// A server in the bed's folder, where only its own user and root come.
struct Server {
    folder: PathBuf,
    process: Option<Process>,
}

impl Server {
    /// Makes the server's folder, which belongs to this user.
    fn prepare(options: &BedOptions, user: &str) -> Result<Self> {
        // The user has to pass the bed's folder.
        fs::set_permissions(options.folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let folder = options.folder.make("server")?;
        let user = User::from_name(user).unwrap().unwrap();
        chown(&folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        Ok(Self { folder, process: None })
    }

    /// Starts it and waits until this command succeeds.
    fn start(&mut self, words: &[&str], is_ready: &dyn Fn() -> Output) -> Result<()> {
        let output = self.folder.with_file_name("server.log");
        self.process = Some(Process::start("server", &argv(words), &output)?);
        wait_for("the server to answer", PATIENCE, || {
            let output = is_ready();
            Ok(if output.status.success() { Ok(()) } else { Err(format!("{output:?}")) })
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            let _ended = process.stop(PATIENCE);
        }
    }
}

/// Runs a program with these variables; its output.
fn run(words: &[&str], variables: &[(String, String)]) -> Output {
    Command::new(words.first().unwrap())
        .args(words.iter().skip(1))
        .envs(variables.iter().cloned())
        .current_dir("/")
        .output()
        .unwrap()
}

/// What a program prints. It must succeed.
fn print(words: &[&str], variables: &[(String, String)]) -> String {
    let output = run(words, variables);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a program is missing, and the reason for a skip.
fn lacks(programs: &[&str]) -> Option<String> {
    if !geteuid().is_root() {
        return Some("needs root to become a server's user".to_owned());
    }
    let is_there = |program: &&&str| Command::new(server_program(program)).arg("--version").output().is_ok();
    let missing = programs.iter().find(|program| !is_there(program))?;
    Some(format!("needs {missing} (DATABASE_PACKAGES=1 scripts/system-packages)"))
}

/// The path of a program that Debian keeps out of `PATH`, or just its name.
fn server_program(name: &str) -> String {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut paths: Vec<_> = versions.map(|version| version.path().join("bin").join(name)).collect();
    paths.retain(|path| path.exists());
    paths.sort();
    paths.pop().map_or_else(|| name.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Saves with the documented FileSet, and restores into what `make` has made. Returns the folder of
/// `where`.
fn save_and_restore(options: BedOptions, make: impl Fn()) -> Result<(Bed, PathBuf)> {
    let bed = Bed::start(options)?;
    let saved = bed.backup("ours", "")?.must_be_good()?;
    make();
    let place = bed.folder().join("restored");
    fs::create_dir_all(&place).unwrap();
    bed.restore_own("ours", saved.row.id, &place)?.must_be_good()?;
    Ok((bed, place))
}

/// A bed with this FileSet and these variables for the daemon.
fn options_for(set: &str, variables: &[(String, String)]) -> Result<BedOptions> {
    let mut client = ClientOptions::new(Fd::Ours);
    client.environment = variables.to_vec();
    let mut options = BedOptions::new("databases", [client])?;
    options.file_sets = vec![documented(set)];
    Ok(options)
}

fn as_user<'w>(words: &[&'w str]) -> Vec<&'w str> {
    [&["runuser", "-u", "postgres", "--"], words].concat()
}

#[test]
fn a_database_of_postgresql_is_restored_into_a_new_one() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    skip::lacks!(lacks(&["runuser", "postgres", "initdb", "psql", "pg_dump"]));
    let mut options = options_for("PostgreSQL", &[])?;
    let mut server = Server::prepare(&options, "postgres")?;
    let folder = server.folder.to_str().unwrap().to_owned();
    let variables = [("PGHOST".to_owned(), folder.clone())];
    options.clients.iter_mut().for_each(|client| client.environment = variables.to_vec());
    let data = format!("{folder}/data");
    let [initdb, postgres] = ["initdb", "postgres"].map(server_program);
    print(&as_user(&[&initdb, "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D", &data]), &variables);
    let command = as_user(&[&postgres, "-D", &data, "-k", &folder, "-c", "listen_addresses=", "-c", "fsync=off"]);
    server.start(&command, &|| run(&as_user(&["pg_isready"]), &variables))?;
    let sql = |database: &str, sql: &str| {
        print(&as_user(&["psql", "-qAt", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql]), &variables)
    };
    sql("postgres", "CREATE DATABASE shop TEMPLATE template0");
    sql("postgres", "CREATE ROLE clerk LOGIN PASSWORD 'secret'");
    sql(
        "shop",
        "CREATE TABLE items (id serial PRIMARY KEY, name text UNIQUE, picture bytea, price numeric(10, 2), tags text[]);
         INSERT INTO items (name, picture, price, tags)
             SELECT 'Größe ' || n || E'\\t\\\\', decode(md5(n::text), 'hex'), n / 7.0, ARRAY['a', NULL, n::text]
             FROM generate_series(1, 20000) n;
         CREATE VIEW cheap AS SELECT * FROM items WHERE price < 10;
         GRANT SELECT ON items TO clerk",
    );
    let make = || drop(sql("postgres", "CREATE DATABASE shop_restored TEMPLATE template0"));
    let (bed, place) = save_and_restore(options, make)?;
    let dump = |database: &str| {
        let text = print(&as_user(&["pg_dump", database]), &variables);
        // Newer releases put a random word at both ends.
        text.lines().filter(|line| !line.contains("restrict ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(dump("shop"), dump("shop_restored"));
    assert_eq!(sql("shop_restored", "SELECT count(*) FROM cheap"), sql("shop", "SELECT count(*) FROM cheap"));
    let globals = fs::read_to_string(place.join("globals.sql")).unwrap();
    assert!(globals.contains("CREATE ROLE clerk"), "{globals}");
    // A second restore finds its tables there: psql stops, and the job says so.
    let saved = bed.backup("ours", "")?.must_be_good()?;
    let again = bed.restore_own("ours", saved.row.id, &place)?;
    assert!(again.row.status != 'T' && again.log.contains("relation \"items\" already exists"), "{again:?}");
    Ok(())
}

#[test]
fn a_database_of_mariadb_is_restored_into_a_new_one() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    skip::lacks!(lacks(&["mariadbd", "mariadb-install-db", "mariadb", "mariadb-dump"]));
    let mut options = options_for("MariaDB", &[])?;
    let mut server = Server::prepare(&options, "mysql")?;
    let folder = server.folder.to_str().unwrap().to_owned();
    let socket = format!("{folder}/socket");
    // Where the server is, as an administrator's programs find it.
    fs::write(format!("{folder}/.my.cnf"), format!("[client]\nsocket={socket}\n")).unwrap();
    let variables = [("HOME".to_owned(), folder.clone())];
    options.clients.iter_mut().for_each(|client| client.environment = variables.to_vec());
    let data = format!("--datadir={folder}/data");
    print(
        &[
            "mariadb-install-db",
            "--no-defaults",
            "--user=mysql",
            "--skip-test-db",
            "--auth-root-authentication-method=socket",
            &data,
        ],
        &variables,
    );
    let socket = format!("--socket={socket}");
    let command = ["mariadbd", "--no-defaults", "--user=mysql", "--skip-networking", &data, &socket];
    server.start(&command, &|| run(&["mariadb", "--execute=SELECT 1"], &variables))?;
    let sql = |sql: &str| print(&["mariadb", "--batch", "--execute", sql], &variables);
    sql("CREATE DATABASE shop; USE shop;
         CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100), picture BLOB, price DECIMAL(10, 2));
         INSERT INTO items (name, picture, price)
             SELECT CONCAT('Größe ', seq, '\\t\\\\'), UNHEX(MD5(seq)), seq / 7 FROM seq_1_to_20000;
         CREATE VIEW cheap AS SELECT * FROM items WHERE price < 10;
         CREATE PROCEDURE total() SELECT SUM(price) FROM items;
         CREATE USER clerk@localhost IDENTIFIED BY 'secret'");
    let make = || drop(sql("CREATE DATABASE shop_restored"));
    let (_bed, place) = save_and_restore(options, make)?;
    let dump = |database: &str| {
        let text = print(&["mariadb-dump", "--skip-comments", "--routines", "--hex-blob", database], &variables);
        text.replace(&format!("`{database}`"), "`DATABASE`")
    };
    assert_eq!(dump("shop"), dump("shop_restored"));
    assert_eq!(sql("CALL shop_restored.total()"), sql("CALL shop.total()"));
    let users = fs::read_to_string(place.join("users.sql")).unwrap();
    assert!(users.contains("clerk"), "{users}");
    Ok(())
}
