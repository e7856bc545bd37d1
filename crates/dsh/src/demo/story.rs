//! The story of the demonstration, chapter by chapter.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dsh_agent::Agent;
use dsh_agent_core::ServiceContext;
use dsh_tasks::TaskId;
use serde_json::{Value, json};

use super::DemoError;
use super::checksum::{checksum, checksum_task};
use super::facts::Facts;
use super::transcript::Transcript;

/// A short build: it prints, takes a moment, and ends by itself.
const BUILD: &str =
    "for step in fetch compile link; do echo \"$step\"; sleep 0.2; done; echo 'build finished'";

/// A server with a child of its own, both of which say who they are and would go on for ten minutes.
const SERVER: &str = "echo \"server pid $$\"; sleep 600 & echo \"worker pid $!\"; wait";

/// One agent at work.
pub(crate) struct Story<'a> {
    context: &'a ServiceContext,
    agent: &'a Arc<Agent>,
    transcript: Transcript<'a>,
    facts: Facts,
}

impl<'a> Story<'a> {
    pub(crate) fn new(context: &'a ServiceContext, agent: &'a Arc<Agent>) -> Self {
        Self {
            context,
            agent,
            transcript: Transcript::new(agent, &context.tools),
            facts: Facts::default(),
        }
    }

    /// Tells it, and returns what it claims.
    pub(crate) async fn tell(mut self) -> Result<Facts, DemoError> {
        let (build, server) = self.two_commands_in_the_background().await?;
        self.something_else_meanwhile(&server).await?;
        self.the_build_is_told_and_collected(&build).await?;
        self.a_producer_of_its_own_kind().await?;
        self.the_server_is_killed(&server).await?;
        self.the_list_is_complete().await?;
        Ok(self.facts)
    }

    async fn two_commands_in_the_background(&mut self) -> Result<(String, String), DemoError> {
        self.transcript
            .chapter("Two commands go to the background; the agent is not held up.")?;
        let build = self.transcript.start("Build the project", BUILD).await?;
        let server = self.transcript.start("Start the server", SERVER).await?;
        Ok((build, server))
    }

    async fn something_else_meanwhile(&mut self, server: &str) -> io::Result<()> {
        self.transcript.chapter("Meanwhile it does something else.")?;
        let arguments =
            json!({"command": "echo \"meanwhile: $((6 * 7))\"", "description": "Do some arithmetic"});
        let said = self.transcript.call("bash", arguments).await?;
        let server = self.context.tasks.get(&TaskId::from(server), Some(self.agent));
        let beside = server.is_ok_and(|server| !server.status.is_terminal());
        self.facts.check(
            "a foreground command ran while a task was running",
            said.contains("meanwhile: 42") && beside,
        );
        Ok(())
    }

    async fn the_build_is_told_and_collected(&mut self, build: &str) -> io::Result<()> {
        self.transcript
            .chapter("It is told that the build finished, without having asked.")?;
        let notice = self.transcript.notice().await?;
        let about_the_build = notice.contains(&format!("{build} (bash: "));
        let with_its_exit_code = notice.contains("[status: completed, exit code: 0]");
        self.facts.check(
            "the notice is about the build, with its exit code",
            about_the_build && with_its_exit_code,
        );
        let output = self
            .control(self.output_tool(), json!({ self.id_param(): build }))
            .await?;
        self.facts.check(
            "its output is all there",
            output.starts_with("fetch\ncompile\nlink\nbuild finished\n"),
        );
        Ok(())
    }

    async fn a_producer_of_its_own_kind(&mut self) -> Result<(), DemoError> {
        self.transcript
            .chapter("A producer of its own kind: work whose result is there when it is done.")?;
        let data: Vec<u8> = (0..4_u32 << 20)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
            .collect();
        let expected = checksum(&data, &AtomicBool::new(false));
        let producer = checksum_task("four mebibytes", data).owned_by(Arc::clone(self.agent));
        let id = self.context.tasks.start(producer)?;
        self.transcript
            .note(&format!("started {id} through the registry's public API"))?;
        let arguments = json!({ self.id_param(): id.to_string(), "wait": true });
        let result = self.control(self.output_tool(), arguments).await?;
        let is_right = expected.is_some_and(|sum| result == format!("{sum:08x}\n[status: completed]"));
        self.facts
            .check("the wait delivered the right checksum", is_right);
        Ok(())
    }

    async fn the_server_is_killed(&mut self, server: &str) -> io::Result<()> {
        self.transcript.chapter("The server is no longer needed.")?;
        let mut said = self
            .control(self.output_tool(), json!({ self.id_param(): server }))
            .await?;
        // On a busy machine it may not have come to its second line yet.
        while said.matches(" pid ").count() < 2 && said.ends_with("[status: running]") {
            let look = json!({ self.id_param(): server, "wait": true, "timeout_ms": 500 });
            said = said + "\n" + &self.control(self.output_tool(), look).await?;
        }
        self.facts.watch_pids(&said);
        let kill = json!({ self.id_param(): server, "reason": "the demonstration is over" });
        self.control(self.context.tasks.vocabulary().kill_tool(), kill)
            .await?;
        let end = self
            .control(
                self.output_tool(),
                json!({ self.id_param(): server, "wait": true }),
            )
            .await?;
        let as_asked = end.ends_with("[status: killed, signal: SIGTERM]");
        self.facts
            .check("the server ended by the signal it was sent", as_asked);
        self.facts.both_pids_are_gone();
        Ok(())
    }

    async fn the_list_is_complete(&mut self) -> io::Result<()> {
        let list = self
            .control(self.context.tasks.vocabulary().list_tool(), json!({}))
            .await?;
        let all_ended = !list.contains(" running") && !list.contains(" stopping");
        self.facts.check(
            "the list shows three tasks, all of them ended",
            list.lines().count() == 3 && all_ended,
        );
        self.facts
            .check("nothing was told twice", self.agent.inbox().pending() == 0);
        Ok(())
    }

    async fn control(&mut self, tool: &str, arguments: Value) -> io::Result<String> {
        self.transcript.call(tool, arguments).await
    }

    fn output_tool(&self) -> &'static str {
        self.context.tasks.vocabulary().output_tool()
    }

    fn id_param(&self) -> &'static str {
        self.context.tasks.vocabulary().id_param()
    }
}
