//! Skills: given to an agent and taken away, told of and read, whatever a crash or a clumsy hand left behind.

use crate::ask::Ask;
use crate::daemon::{BORN, Daemon, Home, of_kind};
use holon::words::limit::{SKILL_BYTES_MAX, SKILL_DEPTH_MAX, SKILL_FILES_MAX};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const INSTALL: &str = "/control/agents/main/skills/install";
const UNINSTALL: &str = "/control/agents/main/skills/uninstall";
const SKILLS: &str = "/agents/main/skills";

/// Writes a skill's folder, which bears its name.
fn skill(folder: &Path, description: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let name = folder.file_name().expect("a name").to_string_lossy();
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nUse glue.\n");
    fs::write(folder.join("SKILL.md"), text).expect("a file");
}

/// The folder of a skill of main's.
fn installed(home: &Home, name: &str) -> PathBuf {
    home.path().join("agents/main/skills").join(name)
}

/// What lies among main's skills.
fn names(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.path().join("agents/main/skills")).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn builtin() -> Value {
    json!({"kind": {"kind": "builtin", "name": "long-work"}})
}

fn local(path: &Path, mode: &str) -> Value {
    json!({"kind": {"kind": "local", "path": path, "mode": mode}})
}

/// What the next prompt would say of skills.
async fn told(daemon: &Daemon) -> String {
    let preview = daemon.post("/control/agents/main/debug-prompt", json!({"text": "x"})).await;
    let dump = preview["dump"].as_str().expect("a text").to_owned();
    let section = dump.split("=== ").find(|section| section.contains("[skills that are installed"));
    section.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_skill_is_installed_listed_and_taken_away() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    assert_eq!(ask.get(SKILLS).await.ok(), json!({"ok": true, "agent_id": "main", "skills": []}));
    let done = json!({"ok": true, "agent_id": "main", "skill_name": "long-work"});
    assert_eq!(ask.post(INSTALL, builtin()).await.ok(), done);
    let shown = ask.get(SKILLS).await.ok()["skills"][0].take();
    assert_eq!(shown["path"], json!(installed(&home, "long-work")));
    let about = ["skill_id", "name", "scope", "source", "install_mode"].map(|name| shown[name].clone());
    assert_eq!(about, ["agent:long-work", "long-work", "agent", "builtin", "copied"]);
    assert!(shown["description"].as_str().is_some_and(|text| text.starts_with("How to hold work")), "{shown}");
    assert!(shown.get("link_target").is_none() && shown.get("warning").is_none(), "{shown}");

    let problem = ask.post(INSTALL, builtin()).await.refused(409, "skill_already_installed");
    assert_eq!((&problem["skill_name"], &problem["destination"]), (&json!("long-work"), &shown["path"]));
    assert_eq!(ask.post(UNINSTALL, json!({"name": "long-work"})).await.ok(), done);
    assert_eq!(names(&home), Vec::<String>::new());
    ask.post(UNINSTALL, json!({"name": "long-work"})).await.refused(404, "not_found");
    let events = daemon.events("main").await;
    assert_eq!(
        of_kind(&events, "skill_installed"),
        [&json!({"name": "long-work", "source": "builtin", "mode": "copied", "folder": null})]
    );
    assert_eq!(of_kind(&events, "skill_uninstalled"), [&json!({"name": "long-work"})]);
    assert_eq!(events.len() as u64, BORN + 2, "no turn was begun for it");
}

#[tokio::test]
async fn a_linked_skill_is_as_its_source_is_and_a_copied_one_as_it_was() {
    let home = Home::new();
    let folder = home.workspace().canonicalize().expect("it is there").join("mend");
    skill(&folder, "first");
    fs::write(folder.join("glue.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join("glue.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    skill(&home.path().join("skills/paint"), "of the home");
    let daemon = home.serve();
    for (mode, said) in [("linked", "second"), ("copied", "first")] {
        skill(&folder, "first");
        daemon.post(INSTALL, local(&folder, mode)).await;
        skill(&folder, "second");
        let shown = daemon.get(SKILLS).await["skills"][0].take();
        assert_eq!((&shown["description"], &shown["install_mode"]), (&json!(said), &json!(mode)));
        assert_eq!(shown.get("link_target"), (mode == "linked").then_some(&json!(folder)));
        let script = fs::metadata(installed(&home, "mend").join("glue.sh")).expect("the rest came along");
        assert_eq!(script.permissions().mode() & 0o777, 0o755);
        daemon.post(UNINSTALL, json!({"name": "mend"})).await;
        assert!(folder.join("SKILL.md").exists(), "what it was made from stays");
    }
    daemon.post(INSTALL, json!({"kind": {"kind": "named", "name": "paint"}})).await;
    let shown = daemon.get(SKILLS).await["skills"][0].take();
    let about = ["description", "source", "install_mode"].map(|name| shown[name].clone());
    assert_eq!(about, ["of the home", "named", "linked"]);
}

/// A tool's result, as the ledger has it.
fn results(events: &[Value]) -> Vec<String> {
    let entries = of_kind(events, "turn_entry").into_iter();
    entries.filter_map(|entry| Some(entry["entry"].get("tool_result")?["result"].to_string())).collect()
}

#[tokio::test]
async fn an_agent_is_told_of_its_skills_and_reads_them_from_wherever_it_works() {
    let home = Home::new();
    let read = |path: PathBuf| json!({"tool": "ReadFile", "arguments": {"path": path, "max_lines": 5}});
    let of = |name: &str, file: &str| read(home.path().join("agents/main/skills").join(name).join(file));
    let calls = [
        of("mend", "SKILL.md"),
        of("long-work", "SKILL.md"),
        of("mend", "../long-work/SKILL.md"),
        of("mend", "out"),
        of("stray", "SKILL.md"),
        of("", ""),
    ];
    let from_home = read("skills/mend/SKILL.md".into());
    let script = json!({"rounds": [{"calls": calls}, {"text": "read"}, {"calls": [from_home]}, {"text": "read"},
        {"calls": [of("mend", "SKILL.md")]}], "default": {"text": "done"}});
    let home = home.scripted(&script);
    let folder = home.workspace().join("mend");
    skill(&folder, "Mends\n  what broke");
    fs::write(home.workspace().join("secret"), "never-told").unwrap();
    symlink("../secret", folder.join("out")).unwrap();
    skill(&installed(&home, "stray"), "that nobody installed");
    let daemon = home.serve();
    daemon.post(INSTALL, local(&folder, "linked")).await;
    daemon.post(INSTALL, builtin()).await;
    let section = told(&daemon).await;
    let path = installed(&home, "mend").join("SKILL.md").display().to_string();
    assert!(section.contains(&format!("> - mend: Mends what broke\n>   {path}\n")), "{section}");
    assert!(section.contains("- long-work: How to hold work") && !section.contains("stray"), "{section}");

    let message = daemon.prompt("main", "read up").await;
    daemon.answer("main", &message).await;
    let came = results(&daemon.events("main").await);
    assert!(came[0].contains("name: mend") && came[1].contains("name: long-work"), "{came:#?}");
    for refused in &came[2..] {
        assert!(refused.contains("refused") && !refused.contains("never-told"), "{refused}");
    }
    daemon.post("/control/agents/main/workspace/exit", json!({})).await;
    let message = daemon.prompt("main", "read at home").await;
    daemon.answer("main", &message).await;
    let came = results(&daemon.events("main").await);
    assert!(came.last().is_some_and(|result| result.contains("name: mend")), "{came:#?}");

    daemon.post(UNINSTALL, json!({"name": "mend"})).await;
    daemon.post(UNINSTALL, json!({"name": "long-work"})).await;
    assert_eq!(told(&daemon).await, "");
    let message = daemon.prompt("main", "read again").await;
    daemon.answer("main", &message).await;
    let events = daemon.events("main").await;
    assert!(results(&events).last().is_some_and(|result| result.contains("refused")), "{events:#?}");
    let read = of_kind(&events, "guidance_read");
    let hashes: Vec<bool> =
        read.iter().filter(|read| read["scope"] == "skills").map(|read| read["hash"].is_null()).collect();
    assert_eq!(hashes, [false, true], "it is recorded when it changed");
}

#[tokio::test]
async fn a_child_is_not_told_of_its_parents_skills() {
    let home = Home::new();
    let daemon = home.serve();
    daemon.post(INSTALL, builtin()).await;
    daemon.prompt("main", "spawn: help\n    say: helped\nwait task").await;
    daemon.wait_for("main", "task_child_spawned").await;
    daemon.wait_for("main.c1", "turn_terminal").await;
    let events = daemon.events("main.c1").await;
    assert_eq!(of_kind(&events, "guidance_read"), Vec::<&Value>::new());
    assert_eq!(daemon.get("/agents/main.c1/skills").await["skills"], json!([]));
}

#[tokio::test]
async fn what_is_no_skill_is_refused_and_leaves_nothing() {
    let home = Home::new();
    let folder = home.workspace();
    for (name, text) in [("bare", "# Bare\n"), ("other", "---\nname: another\ndescription: x\n---\n")] {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("SKILL.md"), text).unwrap();
    }
    fs::create_dir(folder.join("empty")).unwrap();
    skill(&folder.join("a name"), "with a space");
    skill(&folder.join("piped"), "x");
    symlink("/etc", folder.join("piped/etc")).unwrap();
    skill(&folder.join("deep"), "x");
    fs::create_dir_all(folder.join("deep").join("d/".repeat(SKILL_DEPTH_MAX + 1))).unwrap();
    skill(&folder.join("many"), "x");
    (0..SKILL_FILES_MAX).for_each(|number| fs::write(folder.join("many").join(number.to_string()), "").unwrap());
    skill(&folder.join("big"), "x");
    fs::File::create(folder.join("big/data")).unwrap().set_len(SKILL_BYTES_MAX).unwrap();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    for (name, reason) in [
        ("bare", "front matter"),
        ("other", "of another skill: another"),
        ("empty", "no SKILL.md"),
        ("a name", "ASCII letters"),
        ("piped", "neither a file nor a folder"),
        ("deep", "deep"),
        ("many", "more than 256 files"),
        ("big", "bytes"),
    ] {
        let problem = ask.post(INSTALL, local(&folder.join(name), "copied")).await.refused(422, "invalid_field");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(reason)), "{name}: {problem}");
    }
    for path in ["nowhere", "bare/SKILL.md"] {
        ask.post(INSTALL, local(&folder.join(path), "linked")).await.refused(400, "invalid_path");
    }
    ask.post(INSTALL, local(Path::new("bare"), "linked")).await.refused(400, "invalid_path");
    for kind in ["builtin", "named"] {
        let unknown = json!({"kind": {"kind": kind, "name": "nowhere"}});
        let problem = ask.post(INSTALL, unknown).await.refused(404, "not_found");
        assert!(problem["hint"].is_string(), "{problem}");
        for name in ["..", "../../agents", "a/b", ".new", ""] {
            let body = json!({"kind": {"kind": kind, "name": name}});
            assert_eq!(ask.post(INSTALL, body).await.refused(422, "invalid_field")["field"], "kind.name");
        }
    }
    ask.post(UNINSTALL, json!({"name": "../main"})).await.refused(422, "invalid_field");
    ask.post(INSTALL, json!({"kind": {"kind": "builtin", "name": "x", "mode": "moved"}}))
        .await
        .refused(422, "invalid_field");
    let remote = json!({"kind": {"kind": "remote", "package": "owner/repository", "skill": "mend", "mode": "copied"}});
    let problem = ask.post(INSTALL, &remote).await.refused(424, "skill_manager_unavailable");
    assert!(problem["manager"].is_null() && problem["hint"].is_string(), "{problem}");
    ask.post("/control/agents/nobody/skills/install", &remote).await.refused(404, "agent_not_found");
    assert_eq!(names(&home), Vec::<String>::new());
    assert!(!home.path().join("agents/nobody").exists());
    assert_eq!(daemon.head("main").await, BORN);
    // A link takes no room.
    ask.post(INSTALL, local(&folder.join("many"), "linked")).await.ok();
    ask.post(INSTALL, local(&installed(&home, "many"), "copied")).await.refused(409, "skill_already_installed");
}

#[tokio::test]
async fn a_request_that_comes_again_is_answered_again_and_nothing_is_done() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let first = ask.post_as("one", INSTALL, builtin()).await.ok();
    assert_eq!(ask.post_as("one", INSTALL, builtin()).await.ok(), first);
    ask.post_as("two", UNINSTALL, json!({"name": "long-work"})).await.ok();
    let head = daemon.head("main").await;
    assert_eq!(ask.post_as("one", INSTALL, builtin()).await.ok(), first);
    ask.post_as("two", UNINSTALL, json!({"name": "long-work"})).await.ok();
    assert_eq!((daemon.head("main").await, names(&home)), (head, Vec::new()), "it is as it was after the second");
}

#[tokio::test]
async fn what_a_crash_left_of_a_skill_is_set_right_by_the_next_request() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    ask.post(INSTALL, builtin()).await.ok();
    daemon.kill();
    // As it is between a folder and its record, between a record and its folder's end, and in the middle of a copy.
    skill(&installed(&home, "mend"), "half made");
    fs::create_dir_all(installed(&home, ".mend/half")).unwrap();
    skill(&installed(&home, "runbook"), "whose record is gone");
    let folder = home.workspace().join("mend");
    skill(&folder, "whole");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let listed = ask.get(SKILLS).await.ok();
    assert_eq!(listed["skills"].as_array().map(Vec::len), Some(1), "what no record names is nobody's: {listed}");
    ask.post(INSTALL, local(&folder, "copied")).await.ok();
    for mode in ["linked", "copied"] {
        ask.post(INSTALL, local(&installed(&home, "runbook"), mode)).await.refused(422, "invalid_field");
        assert!(installed(&home, "runbook/SKILL.md").exists(), "no folder is put in place of itself");
    }
    ask.post(UNINSTALL, json!({"name": "runbook"})).await.refused(404, "not_found");
    assert_eq!(names(&home), ["long-work", "mend"]);
    let text = fs::read_to_string(installed(&home, "mend").join("SKILL.md")).unwrap();
    assert!(text.contains("whole"), "{text}");

    // A hand was at work.
    fs::remove_dir_all(installed(&home, "long-work")).unwrap();
    let skills = ask.get(SKILLS).await.ok();
    assert!(skills["skills"][0]["warning"].as_str().is_some_and(|text| text.contains("no SKILL.md")), "{skills}");
    assert!(!told(&daemon).await.contains("long-work"));
    ask.post(UNINSTALL, json!({"name": "long-work"})).await.ok();
    ask.post(INSTALL, builtin()).await.ok();
    assert!(told(&daemon).await.contains("long-work"));
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn many_who_ask_at_once_leave_what_the_ledger_says() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let asked = (0..24).map(|number| {
        let ask = ask.clone();
        async move {
            match number % 3 {
                0 => ask.post(UNINSTALL, json!({"name": "long-work"})).await.status,
                _ => ask.post(INSTALL, builtin()).await.status,
            }
        }
    });
    let statuses = futures::future::join_all(asked).await;
    assert!(statuses.iter().all(|status| [200, 404, 409].contains(status)), "{statuses:?}");
    let listed = ask.get(SKILLS).await.ok()["skills"].as_array().map_or(0, Vec::len);
    assert_eq!(names(&home).len(), listed);
    let events = daemon.events("main").await;
    let changes = |kind| of_kind(&events, kind).len();
    assert_eq!(changes("skill_installed") - changes("skill_uninstalled"), listed);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count() as u64, daemon.head("main").await - BORN);
}
