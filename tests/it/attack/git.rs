//! Repositories that name programs: the daemon runs none of them.

use crate::daemon::{Daemon, Home, of_kind};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=trunk"]);
    let output = command.args(arguments).current_dir(folder).output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// Where a program that was run leaves a sign.
fn signs(home: &Home) -> PathBuf {
    let folder = home.workspace().with_file_name("signs");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// What was run.
fn run(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(signs(home)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// A shell line that leaves a sign and passes its input on.
fn sign(home: &Home, name: &str) -> String {
    format!("touch {}/{name}; cat", signs(home).display())
}

/// A repository with two commits' worth of files, and attributes that ask for drivers.
fn repository(home: &Home) -> PathBuf {
    let root = home.workspace();
    git(&root, &["init", "-q"]);
    fs::write(root.join(".gitattributes"), "*.bin filter=evil diff=evil\n").unwrap();
    fs::write(root.join("a.bin"), "one\n").unwrap();
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "first"]);
    root
}

/// Settings that name a program in every place that git would look at for a worktree.
fn arm(home: &Home, directory: &Path) {
    let config = directory.join("config").display().to_string();
    let set = |name: &str, value: &str| git(Path::new("/"), &["config", "--file", &config, name, value]);
    let signs = |name: &str| sign(home, name);
    for driver in ["evil", "info"] {
        set(&format!("filter.{driver}.smudge"), &signs("smudge"));
        set(&format!("filter.{driver}.clean"), &signs("clean"));
        set(&format!("filter.{driver}.required"), "true");
    }
    set("diff.evil.textconv", &signs("textconv"));
    set("diff.evil.command", &signs("driver"));
    set("diff.external", &signs("external"));
    set("core.fsmonitor", &signs("fsmonitor"));
    set("core.pager", &signs("pager"));
    set("pager.diff", &signs("pager"));
    set("core.editor", &signs("editor"));
    set("gpg.program", &signs("gpg"));
    let hooks = directory.join("hooks");
    fs::create_dir_all(&hooks).unwrap();
    set("core.hooksPath", &hooks.display().to_string());
    for name in ["post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"] {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(hooks.join(name), format!("#!/bin/sh\n{}\n", sign(home, name))).unwrap();
        fs::set_permissions(hooks.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::create_dir_all(directory.join("info")).unwrap();
    fs::write(directory.join("info/attributes"), "*.txt filter=info\n").unwrap();
}

/// The worktree of a child that did `steps` has been looked at.
async fn settled(daemon: &Daemon, steps: &str) -> serde_json::Value {
    daemon.prompt("main", &format!("spawn in a worktree: write\n{steps}\nwait task")).await;
    daemon.wait_for("main", "worktree_created_for_task").await;
    let names = ["worktree_retained_for_review", "worktree_auto_cleaned_up", "worktree_auto_cleanup_failed"];
    let event = daemon.wait("main", 0, |event| names.contains(&event.kind.as_str())).await;
    assert_eq!(event.kind, "worktree_retained_for_review", "{:?}", event.data);
    event.data["payload"]["summary"].clone()
}

#[tokio::test]
async fn no_program_of_a_repository_is_run_for_a_worktree() {
    let home = Home::new();
    let root = repository(&home);
    arm(&home, &root.join(".git"));
    let daemon = home.serve();
    let summary = settled(&daemon, "  $ echo two >> a.bin; echo new > new.txt").await;
    assert_eq!(run(&home), Vec::<String>::new(), "nothing was run");
    let changed = summary["changed"].as_array().expect("changes").iter().map(|file| file["path"].clone());
    assert_eq!(changed.collect::<Vec<_>>(), ["a.bin", "new.txt"]);
    assert_eq!((&summary["insertions"], &summary["commits"]), (&1.into(), &0.into()));
}

#[tokio::test]
async fn a_worktree_that_points_elsewhere_is_looked_at_through_its_repository() {
    let home = Home::new();
    repository(&home);
    let elsewhere = home.workspace().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    git(&elsewhere, &["init", "-q", "--bare", "."]);
    arm(&home, &elsewhere);
    let daemon = home.serve();
    let steps = format!("  $ echo 'gitdir: {}' > .git; echo two >> a.bin", elsewhere.display());
    let summary = settled(&daemon, &steps).await;
    assert_eq!(run(&home), Vec::<String>::new(), "nothing was run");
    assert_eq!(summary["changed"][0]["path"], "a.bin");
}

#[tokio::test]
async fn what_a_repository_lacks_is_fetched_from_nowhere() {
    let home = Home::new();
    let root = repository(&home);
    let output = Command::new("git").args(["rev-parse", "HEAD:a.bin"]).current_dir(&root).output().unwrap();
    let blob = String::from_utf8(output.stdout).unwrap();
    let (first, rest) = blob.trim().split_at(2);
    fs::remove_file(root.join(".git/objects").join(first).join(rest)).unwrap();
    let upload = format!("touch {}/uploadpack;", signs(&home).display());
    for (name, value) in [
        ("extensions.partialClone", "evil"),
        ("remote.evil.url", "/"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.uploadpack", &upload),
        ("protocol.file.allow", "always"),
        ("protocol.ext.allow", "always"),
    ] {
        git(&root, &["config", name, value]);
    }
    let daemon = home.serve();
    let message = daemon.prompt("main", "spawn in a worktree: write").await;
    daemon.answer("main", &message).await;
    let events = daemon.events("main").await;
    let entries = of_kind(&events, "turn_entry").into_iter();
    let mut refused =
        entries.filter_map(|entry| entry["entry"]["tool_result"]["result"]["refused"]["message"].as_str());
    assert!(refused.next_back().is_some_and(|message| message.contains("worktree")), "{events:#?}");
    assert_eq!(run(&home), Vec::<String>::new(), "nothing was run");
}
