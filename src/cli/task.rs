//! `holon task …`: commands and children that an agent has under way.

use super::agent::{AgentArg, ListArgs};
use super::{Globals, Outcome, print};
use crate::words::id::TaskId;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Characters of a summary that a row has room for.
const SUMMARY_CHARS_MAX: usize = 60;

#[derive(Subcommand)]
pub(super) enum TaskVerb {
    /// What runs, then what has ended.
    List(ListArgs),
    /// One task in full.
    Show(OneTask),
    /// Have a command run, as the agent itself could.
    Create(CreateArgs),
    /// What a task has written.
    Output {
        #[command(flatten)]
        task: OneTask,
        /// From this byte on.
        #[arg(long, default_value_t = 0, value_name = "BYTE")]
        offset: u64,
        /// As many bytes as this.
        #[arg(long, value_name = "N")]
        limit_bytes: Option<u64>,
    },
    /// Give a task a text: a command on its standard input, a child as a message.
    Input {
        #[command(flatten)]
        task: OneTask,
        /// What it is given; a line ends with a line break.
        text: String,
    },
    /// End a task.
    Stop(OneTask),
}

#[derive(Args)]
pub(super) struct CreateArgs {
    /// What the command is for.
    summary: String,
    /// A command line, or a program and its arguments; -- goes before what begins with a dash.
    #[arg(required = true)]
    cmd: Vec<String>,
    /// The folder to run it in, from where the agent works.
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,
    /// Let it be given input while it runs.
    #[arg(long)]
    accepts_input: bool,
    #[command(flatten)]
    agent: AgentArg,
}

#[derive(Args)]
pub(super) struct OneTask {
    /// Such as task-3.
    id: TaskId,
    #[command(flatten)]
    agent: AgentArg,
}

pub(super) async fn dispatch(globals: &Globals, verb: &TaskVerb) -> Outcome {
    match verb {
        TaskVerb::List(args) => list(globals, args).await,
        TaskVerb::Show(task) => {
            let client = globals.client()?;
            let id = task.agent.id(&client).await?;
            print::record(globals.json, &client.get(&format!("/agents/{id}/tasks/{}", task.id)).await?)
        }
        TaskVerb::Create(args) => create(globals, args).await,
        TaskVerb::Output { task, offset, limit_bytes } => output(globals, task, *offset, *limit_bytes).await,
        TaskVerb::Input { task, text } => {
            direct(globals, task, "input", &json!({"text": text}), "given its input").await
        }
        TaskVerb::Stop(task) => direct(globals, task, "stop", &json!({}), "to end").await,
    }
}

async fn list(globals: &Globals, args: &ListArgs) -> Outcome {
    let tasks = args.page(&globals.client()?, "tasks").await?;
    let row = |task: &Value| {
        vec![
            print::text(&task["id"]),
            print::text(&task["kind"]),
            print::text(&task["status"]),
            print::cut(&print::text(&task["summary"]), SUMMARY_CHARS_MAX),
        ]
    };
    print::list(globals.json, tasks, &["TASK", "KIND", "STATUS", "SUMMARY"], row)
}

async fn create(globals: &Globals, args: &CreateArgs) -> Outcome {
    let client = globals.client()?;
    let id = args.agent.id(&client).await?;
    let CreateArgs { summary, workdir, accepts_input, .. } = args;
    let cmd = command_line(&args.cmd);
    let body = json!({"summary": summary, "cmd": cmd, "workdir": workdir, "accepts_input": accepts_input});
    let made = client.post(&format!("/control/agents/{id}/tasks"), &body).await?;
    print::done(globals.json, &made, &format!("{} of {id} is to run", print::text(&made["id"])))
}

/// One word is for the shell to read; of several each reaches the program as it is.
fn command_line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "),
    }
}

/// The text alone, so that it can be piped on; where it goes on is said beside it.
async fn output(globals: &Globals, task: &OneTask, offset: u64, limit_bytes: Option<u64>) -> Outcome {
    let client = globals.client()?;
    let id = task.agent.id(&client).await?;
    let limit = limit_bytes.map(|limit| format!("&limit_bytes={limit}")).unwrap_or_default();
    let page = client.get(&format!("/agents/{id}/tasks/{}/output?offset={offset}{limit}", task.id)).await?;
    if globals.json {
        print::json(&page);
        return Ok(());
    }
    let text = print::text(&page["output"]);
    print::data(text.strip_suffix('\n').unwrap_or(&text));
    if page["truncated"] == true {
        print::note(&format!("it goes on: --offset {} of {} bytes", page["next_offset"], page["output_bytes"]));
    }
    Ok(())
}

async fn direct(globals: &Globals, task: &OneTask, verb: &str, body: &Value, word: &str) -> Outcome {
    let client = globals.client()?;
    let id = task.agent.id(&client).await?;
    let answer = client.post(&format!("/control/agents/{id}/tasks/{}/{verb}", task.id), body).await?;
    print::done(globals.json, &answer, &format!("{} of {id} is {word}", task.id))
}
