//! A shell into which the commands of a page are typed, as they stand there, on a home and a port of the test's.

use crate::daemon::{Home, PATIENCE};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Where the pages' servers listen.
pub const ADDRESS: &str = "127.0.0.1:7878";
/// Ends the output of each command, with its exit code behind it.
const END: &str = "-- exit ";

/// A line of a block, and what stands behind its `#`.
pub struct Step {
    pub command: String,
    pub comment: String,
}

/// The code blocks of a page in `language`.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    page.split(&opening).skip(1).map(|rest| rest.split("```").next().expect("a block is closed").to_owned()).collect()
}

/// The commands of a block, each with its quotes closed.
pub fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        let (text, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let (text, comment) = (text.trim_end().to_owned(), comment.trim().to_owned());
        match steps.last_mut().filter(|last| last.command.matches('\'').count() % 2 == 1) {
            Some(open) => *open = Step { command: format!("{}\n{text}", open.command), comment },
            None => steps.push(Step { command: text, comment }),
        }
    }
    steps
}

/// A shell into which commands are typed.
pub struct Shell {
    bash: Child,
    input: ChildStdin,
    output: Receiver<String>,
    /// What was printed beside the data.
    complaints: PathBuf,
}

impl Shell {
    pub fn open(home: &Home) -> Self {
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
    pub fn run(&mut self, command: &str) -> String {
        self.enter(command);
        self.enter(&format!("echo \"{END}$?\""));
        let printed = self.until(END);
        let (printed, code) = printed.rsplit_once(END).expect("it was waited for");
        assert_eq!(code.trim(), "0", "{command}: {printed}");
        printed.to_owned()
    }

    /// What a command prints up to `words`, where a person would press Ctrl-C. A suite that runs in the background of a
    /// script ignores SIGINT, and so does what it starts: SIGTERM ends it everywhere.
    pub fn watch(&mut self, command: &str, words: &str) -> String {
        self.enter(command);
        let printed = self.until(words);
        let program = command.split(' ').take(2).collect::<Vec<_>>().join("\0");
        kill(self.child(&program), Signal::SIGTERM).expect("it runs");
        // What it still said is no answer to the next command.
        self.enter(&format!("echo \"{END}$?\""));
        self.until(END);
        printed
    }

    /// Starts a server, as `holon serve &`; answers its address once it is ready.
    pub fn serve(&mut self, command: &str) -> String {
        self.enter(command);
        let ready = self.until("holon is listening on http://");
        ready.trim().rsplit("http://").next().expect("an address").to_owned()
    }

    /// Does what the steps say, and sees that they print what their comments promise.
    ///
    /// `# prints WORDS` is such a promise; with `# until WORDS` a command is watched so far and then ended.
    pub fn follow(&mut self, steps: &[Step]) -> Vec<String> {
        let mut address = ADDRESS.to_owned();
        let mut printed = Vec::new();
        for Step { command, comment } in steps {
            let command = command.replace(ADDRESS, &address);
            let watched = comment.trim_start_matches('…').strip_prefix("until ");
            let said = match watched.and_then(|words| words.split(';').next()) {
                Some(words) => self.watch(&command, words),
                None if command.starts_with("holon serve") => {
                    address = self.serve(&command);
                    String::new()
                }
                None => self.run(&command),
            };
            if let Some(words) = comment.strip_prefix("prints ") {
                assert!(said.contains(words), "{command} does not print {words:?}: {said}");
            }
            printed.push(said);
        }
        printed
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
