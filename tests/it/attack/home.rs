//! Homes that somebody else made, or may write to.

use crate::daemon::Home;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Output;

/// A user that is not the one of this test.
const OTHER: u32 = 1234;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display())).mode() & 0o777
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `holon run` and `holon serve` refuse the home, for a reason.
fn is_refused(home: &Home, reason: &str) {
    for arguments in [&["run", "$ touch ran"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let output = home.run(arguments);
        let told = told(&output);
        assert!(!output.status.success() && told.contains(reason) && told.contains("hint: "), "{arguments:?}: {told}");
        assert!(!told.contains("TOML"), "nothing of it is read before it is refused: {told}");
    }
    assert_eq!(home.written("ran"), "");
}

#[tokio::test]
async fn a_home_of_ones_own_is_closed_to_others_before_it_is_served() {
    let home = Home::new().configured("default_agent = \"main\"\n");
    for folder in ["agents", "triggers"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    for name in ["", "config.toml", "agents", "triggers"] {
        open_to_all(&home.path().join(name));
    }
    let output = home.run(&["doctor"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("open to other users"), "{output:?}");
    assert!(told(&output).contains("open to others"), "whoever reads it is told: {}", told(&output));
    let daemon = home.serve();
    daemon.create("other").await;
    assert!(home.log().contains("closed to other users"), "{}", home.log());
    assert_eq!(mode(&home.path()), 0o700);
    for entry in fs::read_dir(home.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{} is closed", path.display());
    }
    assert_eq!(mode(&home.path().join("ledger.redb")), 0o600);
    assert!(daemon.stop().success());
    let output = home.run(&["doctor"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("mode 700"), "{output:?}");
    let told_before = home.log().matches("closed to other users").count();
    assert!(home.serve().stop().success());
    assert_eq!(home.log().matches("closed to other users").count(), told_before, "it is told once");
}

#[test]
fn a_home_of_another_users_is_refused_before_it_is_read() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root may give files away.
    }
    let home = Home::new().configured("no TOML at all");
    let config = home.path().join("config.toml");
    std::os::unix::fs::chown(home.path(), Some(OTHER), None).unwrap();
    is_refused(&home, "another user");
    std::os::unix::fs::chown(home.path(), Some(0), None).unwrap();
    std::os::unix::fs::chown(&config, Some(OTHER), None).unwrap();
    is_refused(&home, "another user");

    // Who only reads is warned.
    std::os::unix::fs::chown(home.path(), Some(OTHER), None).unwrap();
    fs::write(&config, "").unwrap();
    for arguments in [&["config", "show"][..], &["doctor"], &["ledger", "head"]] {
        let told = told(&home.run(arguments));
        assert!(told.contains("warning: the home is open to others (uid 1234"), "{arguments:?}: {told}");
    }
    let output = home.run(&["config", "show"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn no_link_in_a_home_is_followed() {
    for name in ["lock", "ledger.redb", "secrets.json", "config.toml", "agents", "run", "blobs"] {
        let home = Home::new();
        let victim = home.workspace().join("victim");
        fs::write(&victim, "precious, and no TOML at all").unwrap();
        fs::create_dir_all(home.path()).unwrap();
        symlink(&victim, home.path().join(name)).unwrap();
        is_refused(&home, "is a symlink");
        assert_eq!(fs::read_to_string(victim).unwrap(), "precious, and no TOML at all", "{name}");
    }
    let home = Home::new();
    let elsewhere = home.workspace().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, home.path()).unwrap();
    is_refused(&home, "is a symlink");
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn a_lock_that_is_no_file_of_its_own_is_refused_at_once() {
    let home = Home::new();
    let victim = home.workspace().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir_all(home.path()).unwrap();
    fs::hard_link(&victim, home.path().join("lock")).unwrap();
    is_refused(&home, "not a regular file of its own");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    for name in ["lock", "ledger.redb"] {
        let _ = fs::remove_file(home.path().join("lock"));
        nix::unistd::mkfifo(&home.path().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        is_refused(&home, "not a regular file of its own");
    }
}
