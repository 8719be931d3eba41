//! The README keeps its word: its commands are run as they stand there, on a home and a port of the test's.

use crate::daemon::{Home, PATIENCE};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Where the README's server listens.
const ADDRESS: &str = "127.0.0.1:7878";
/// Ends the output of each command, with its exit code behind it.
const END: &str = "-- exit ";

/// The code blocks in `language` below a heading of the README.
pub fn blocks(heading: &str, language: &str) -> Vec<String> {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("a README");
    let below = readme.split_once(&format!("\n{heading}\n")).expect("the heading is there").1;
    let level = format!("\n{} ", heading.split(' ').next().unwrap_or_default());
    let section = below.split(&level).next().unwrap_or_default();
    let opening = format!("```{language}\n");
    section
        .split(&opening)
        .skip(1)
        .map(|rest| rest.split("```").next().expect("a block is closed").to_owned())
        .collect()
}

/// The commands of a block, each with its quotes closed and without its comment.
fn commands(block: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in block.lines() {
        let line = line.split(" #").next().unwrap_or_default().trim_end();
        match commands.last_mut().filter(|last| last.matches('\'').count() % 2 == 1) {
            Some(open) => *open = format!("{open}\n{line}"),
            None => commands.push(line.to_owned()),
        }
    }
    commands
}

/// A shell into which commands are typed.
struct Shell {
    bash: Child,
    input: ChildStdin,
    output: Receiver<String>,
    /// What was printed beside the data.
    complaints: PathBuf,
}

impl Shell {
    fn open(home: &Home) -> Self {
        let mut bash = Command::new("bash");
        bash.env_clear().env("PATH", path(home)).env("HOLON_HTTP_ADDR", "127.0.0.1:0");
        bash.current_dir(home.workspace()).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let complaints = home.workspace().join("stderr");
        bash.stderr(File::create(&complaints).expect("a file"));
        let mut bash = bash.spawn().expect("bash starts");
        let (input, output) = (bash.stdin.take().expect("a pipe"), bash.stdout.take().expect("a pipe"));
        let (lines, received) = channel();
        std::thread::spawn(move || {
            // Who stopped listening has seen enough.
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        Self { bash, input, output: received, complaints }
    }

    fn enter(&mut self, text: &str) {
        writeln!(self.input, "{text}").expect("it listens");
    }

    /// What it prints, up to the first line with `words`.
    fn until(&self, words: &str) -> String {
        let mut printed = String::new();
        while !printed.contains(words) {
            let line = self.output.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("{words:?} does not come ({error}) after:\n{printed}"));
            printed = format!("{printed}{line}\n");
        }
        printed
    }

    /// What a command prints that does its work and ends.
    fn run(&mut self, command: &str) -> String {
        self.enter(command);
        self.enter(&format!("echo \"{END}$?\""));
        let printed = self.until(END);
        let (printed, code) = printed.rsplit_once(END).expect("it was waited for");
        assert_eq!(code.trim(), "0", "{command}: {printed}");
        printed.to_owned()
    }

    /// What a command prints up to `words`, where Ctrl-C ends it.
    fn watch(&mut self, command: &str, words: &str) -> String {
        self.enter(command);
        let printed = self.until(words);
        let program = command.split(' ').take(2).collect::<Vec<_>>().join("\0");
        kill(self.child(&program), Signal::SIGINT).expect("it runs");
        printed
    }

    /// Starts a server, as `holon serve &`; answers its address once it is ready.
    fn serve(&mut self, command: &str) -> String {
        self.enter(command);
        let ready = self.until("holon is listening on http://");
        ready.trim().rsplit("http://").next().expect("an address").to_owned()
    }

    /// The command that was started with these words.
    fn child(&self, words: &str) -> Pid {
        let shell = self.bash.id();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).expect("it runs");
        let begun =
            |pid: &&str| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(words));
        let found = children.split(' ').find(begun).expect("it runs");
        Pid::from_raw(found.parse().expect("a number"))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // With what runs in its background.
        let _ = killpg(Pid::from_raw(self.bash.id().cast_signed()), Signal::SIGKILL);
        let _ = self.bash.wait();
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(&self.complaints).unwrap_or_default());
        }
    }
}

/// Finds our holon as what has been built, and a cargo with nothing left to build.
fn path(home: &Home) -> String {
    let (target, tools) = (home.workspace().join("target"), home.workspace().join("tools"));
    fs::create_dir_all(&target).and_then(|()| fs::create_dir_all(&tools)).expect("folders");
    let built = Path::new(env!("CARGO_BIN_EXE_holon")).parent().expect("a folder");
    for (to, link) in [(built, target.join("release")), (Path::new("/bin/true"), tools.join("cargo"))] {
        if !link.is_symlink() {
            std::os::unix::fs::symlink(to, link).expect("a link");
        }
    }
    format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default())
}

#[test]
fn killed_in_the_middle_as_the_readme_shows_it_loses_and_repeats_nothing() {
    let home = Home::new();
    let [block] = &blocks("## Kill it", "sh")[..] else { panic!("one block tells it") };
    let commands = commands(&block.replace("/tmp/holon-demo", &home.path().display().to_string()));
    let mut shell = Shell::open(&home);
    let mut printed = Vec::new();
    for command in &commands {
        printed.push(match command.as_str() {
            "holon serve &" => shell.serve(command),
            command if command.starts_with("holon events --follow") => shell.watch(command, "turn_terminal"),
            command => shell.run(command),
        });
    }
    let of = |begin: &str| {
        let at = commands.iter().position(|command| command.starts_with(begin)).expect("the README has it");
        &printed[at]
    };
    assert_eq!(commands.iter().filter(|command| *command == "holon serve &").count(), 2);
    assert_eq!(of("wc -l").trim(), "1 ran.txt");
    assert!(of("holon events").contains("task_exited"), "{}", of("holon events"));
    assert!(of("holon ledger verify").contains("whole"), "{}", of("holon ledger verify"));
}

#[test]
fn the_requests_of_the_readme_are_answered() {
    let home = Home::new();
    let [_, curl, ..] = &blocks("## Use it", "sh")[..] else { panic!("verbs, and requests") };
    let mut shell = Shell::open(&home);
    shell.run(&format!("export PATH=\"$PWD/target/release:$PATH\" HOLON_HOME={}", home.path().display()));
    let address = shell.serve("holon serve &");
    assert!(curl.contains(ADDRESS), "{curl}");
    let [status, prompt, stream] = &commands(&curl.replace(ADDRESS, &address))[..] else { panic!("three requests") };
    let json = |printed: String| serde_json::from_str::<Value>(&printed).expect("JSON");
    assert_eq!(json(shell.run(status))["identity"]["agent_id"], "main");
    assert_eq!(json(shell.run(prompt))["ok"], true);
    assert!(shell.watch(stream, "event: turn_terminal").contains("id: 1\n"));
}

#[test]
fn the_verbs_of_the_readme_are_there() {
    let home = Home::new();
    let [verbs, ..] = &blocks("## Use it", "sh")[..] else { panic!("verbs, and requests") };
    for line in commands(verbs) {
        // `holon agent list | create`: one line for several.
        let many = line.contains(" | ") && !line.contains('\'');
        let words: Vec<&str> = line.split(' ').filter(|word| *word != "|").collect();
        let paths =
            if many { words[2..].iter().map(|verb| vec![words[1], *verb]).collect() } else { vec![vec![words[1]]] };
        for path in paths {
            let help = home.run(&[&path[..], &["--help"]].concat());
            assert!(help.status.success(), "{path:?}");
            let help = String::from_utf8(help.stdout).expect("text");
            let options = words.iter().filter(|word| word.starts_with("--"));
            options.for_each(|option| assert!(help.contains(option), "{path:?} takes no {option}"));
        }
    }
}

#[tokio::test]
async fn the_runbook_of_the_readme_works_through_its_steps() {
    let home = Home::new();
    crate::long_work::repository(&home.workspace());
    let daemon = home.serve();
    let [block] = &blocks("### Runbooks", "sh")[..] else { panic!("one block tells it") };
    let [prompt, status] = &commands(block)[..] else { panic!("a prompt, and a look at what came of it") };
    let run = |command: &str| {
        let mut shell = Shell::open(&home);
        shell.run(&format!("export PATH=\"$PWD/target/release:$PATH\" HOLON_HOME={}", home.path().display()));
        shell.run(command)
    };
    run(prompt);
    assert_eq!(daemon.wait_for("main", "wait_created").await.data["payload"]["wake"]["task_result"], "task-1");
    assert!(run(status).contains("waiting_for_task"));
    daemon.wait("main", 0, |event| event.data["payload"]["wake"]["external"].is_object()).await;
    daemon.enqueue("main", "go on").await;
    daemon.wait_for("main", "work_item_completed").await;
}

#[tokio::test]
async fn the_configuration_of_the_readme_is_one() {
    let [toml] = &blocks("### Models", "toml")[..] else { panic!("one block tells it") };
    let daemon = Home::new().configured(toml).serve();
    assert!(!toml.is_empty() && daemon.is_whole("main").await);
}
