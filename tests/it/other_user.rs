//! Homes of an ordinary user: what holds for root has to hold for somebody else as well.
//!
//! When the suite runs as root, the daemons and verbs of [`Home::of_other_user`] run as the user 1234, in no group of
//! root's. Otherwise they run as whoever runs the suite, who is an ordinary user already.

use crate::daemon::Home;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The id of the user and of its group. No account of the machine needs to have it.
pub const OTHER_USER: u32 = 1234;

/// Whether the suite may act as somebody else.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A home of each user that the suite may act as: its own, and the other user's.
pub fn home_of_each_user() -> Vec<Home> {
    let other = is_root().then(|| Home::new().of_other_user());
    [Home::new()].into_iter().chain(other).collect()
}

/// Lets the command run as the other user; the groups of root are dropped with its id.
pub fn act_as_other_user(command: &mut Command) {
    if is_root() {
        command.uid(OTHER_USER).gid(OTHER_USER);
    }
}

/// Gives the other user a folder and all that is in it. What a daemon removes meanwhile needs no owner.
pub fn give_to_other_user(path: &Path) {
    let given = if is_root() { give(path) } else { Ok(()) };
    let is_given = given.as_ref().err().is_none_or(|error| error.kind() == io::ErrorKind::NotFound);
    assert!(is_given, "{}: {given:?}", path.display());
}

fn give(path: &Path) -> io::Result<()> {
    lchown(path, Some(OTHER_USER), Some(OTHER_USER))?;
    if path.symlink_metadata()?.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| entry.map(|entry| give_to_other_user(&entry.path())))?;
    }
    Ok(())
}

/// A program that the other user may run: the one given, or a copy of it in `folder` if it lies where only root may go.
pub fn program_for_other_user(program: &Path, folder: &Path) -> PathBuf {
    let others_may_enter = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o001 != 0);
    if !is_root() || program.ancestors().all(others_may_enter) {
        return program.to_owned();
    }
    let copy = folder.join("holon");
    if !copy.exists() {
        fs::copy(program, &copy).expect("room for a copy of the program");
        fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    copy
}

#[tokio::test]
async fn each_user_has_daemons_and_commands_of_its_own() {
    for (home, user) in home_of_each_user().into_iter().zip([rustix::process::geteuid().as_raw(), OTHER_USER]) {
        let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
        let daemon = home.serve();
        let message =
            daemon.prompt("main", "$ grep -E '^(Uid|Groups):' /proc/self/status; echo > begun; read go < go").await;
        begun.next().await;
        daemon.kill();
        let daemon = home.serve();
        gate.open();
        let answer = daemon.answer("main", &message).await["text"].to_string();
        assert!(answer.contains(&format!(r"Uid:\t{user}\t{user}\t{user}\t{user}\n")), "{answer}");
        assert!(user != OTHER_USER || answer.contains(r"Groups:\t \n"), "groups of root are left: {answer}");
        assert!(home.run(&["status"]).status.success());
        assert!(daemon.stop().success());
    }
}
