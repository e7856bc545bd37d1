// Drives `dsh acp` with the official ACP client, the way an editor would.
//
// Usage: drive.mjs MODULES DSH DIRECTORY, MODULES being where the client is installed. Every expectation is an assertion;
// the last line on success is `ok`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [modules, dsh, directory] = process.argv.slice(2);
const installed = createRequire(join(modules, "package.json"));
const acp = await import(pathToFileURL(installed.resolve("@agentclientprotocol/sdk")));
const { agent, client } = acp.methods;

const DEADLINE = 30_000;

/// A zombie is not alive.
function alive(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !"ZX".includes(stat.slice(stat.lastIndexOf(")") + 2)[0]);
  } catch {
    return false;
  }
}

async function fact(what, holds) {
  const end = Date.now() + DEADLINE;
  for (;;) {
    const held = holds();
    if (held) return held;
    assert.ok(Date.now() < end, `never happened: ${what}`);
    await sleep(20);
  }
}

const file = (name) => join(directory, name);

function pidIn(name) {
  return fact(`${name} holds a process id`, () => existsSync(file(name)) && Number(readFileSync(file(name), "utf8")));
}

const bash = (command, more = {}) => ({ name: "bash", arguments: { command, description: "a test command", ...more } });
const background = (command) => bash(command, { run_in_background: true });

/// One editor window: it starts the agent, keeps what it is shown, and answers questions.
class Editor {
  shown = [];
  questions = [];

  static async with(script, work) {
    const model = file(`${script.name}.json`);
    writeFileSync(model, JSON.stringify({ turns: script.turns }));
    const editor = new Editor();
    const child = spawn(dsh, ["acp", "--model", `scripted:${model}`], { cwd: directory, stdio: ["pipe", "pipe", "inherit"] });
    const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
    const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
    await acp
      .client({ name: "drive" })
      .onNotification(client.session.update, ({ params }) => void editor.shown.push(params.update))
      .onRequest(client.session.requestPermission, ({ params }) => editor.decide(params))
      .connectWith(stream, async (peer) => {
        editor.peer = peer;
        editor.hello = await peer.request(agent.initialize, {
          protocolVersion: acp.PROTOCOL_VERSION,
          clientCapabilities: { _meta: { terminal_output: true } },
        });
        await work(editor);
      });
    child.stdin.destroy();
    const end = await Promise.race([ended, sleep(DEADLINE, "no end", { ref: false })]);
    assert.equal(end, 0, "the agent leaves with its editor");
    return editor;
  }

  decide(params) {
    const wanted = /allowed/.test(params.toolCall.title) ? "allow_once" : "reject_once";
    const option = params.options.find(({ kind }) => kind === wanted);
    this.questions.push(params.toolCall);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  }

  async open() {
    const opened = await this.peer.request(agent.session.new, { cwd: directory, mcpServers: [] });
    this.session = opened.sessionId;
    return opened;
  }

  prompt(text) {
    return this.peer.request(agent.session.prompt, { sessionId: this.session, prompt: [{ type: "text", text }] });
  }

  of(sort) {
    return this.shown.filter(({ sessionUpdate }) => sessionUpdate === sort);
  }

  text(sort) {
    return this.of(sort).map(({ content }) => content.text).join("");
  }
}

const working = {
  name: "working",
  turns: [
    { reasoning: "Two things.", text: "I look. ", tool_calls: [bash("echo hello; exit 3")] },
    { tool_calls: [background("echo $$ > built; until [ -e go ]; do sleep 0.02; done; echo it is built")] },
    { text: "Started." },
    { tool_calls: [{ name: "task_output", arguments: { task_id: "bash-1" } }] },
    { text: "It is built.", expect: ["it is built", "[status: completed, exit code: 0]"] },
    { tool_calls: [bash("echo $$ > long; exec sleep 300")] },
    { tool_calls: [background("echo $$ > kept; sleep 300 & echo $! > child; wait")] },
    { text: "Runs." },
  ],
};

let session;
const first = await Editor.with(working, async (editor) => {
  assert.equal(editor.hello.protocolVersion, 1);
  assert.equal(editor.hello.agentInfo.name, "dsh");
  assert.equal(editor.hello.agentCapabilities.loadSession, true);
  const opened = await editor.open();
  session = opened.sessionId;
  assert.equal(opened.configOptions[0].category, "model");

  assert.deepEqual(await editor.prompt("build it"), { stopReason: "end_turn" });
  assert.equal(editor.text("agent_message_chunk"), "I look. Started.");
  assert.equal(editor.text("agent_thought_chunk"), "Two things.");
  const [terminal, start] = editor.of("tool_call");
  assert.equal(terminal.content.at(-1).type, "terminal");
  const [printed, acknowledged] = editor.of("tool_call_update");
  assert.match(printed._meta.terminal_output.data, /^hello/);
  assert.equal(printed._meta.terminal_exit.exit_code, 3);
  assert.equal(start.kind, "execute");
  assert.match(acknowledged.content[0].content.text, /started background task bash-1/);
  const pid = await pidIn("built");
  assert.ok(alive(pid), "it runs on between prompts");
  await fact("the live task is shown", () => editor.of("session_info_update").at(-1)?._meta["dsh/tasks"][0]?.id === "bash-1");

  writeFileSync(file("go"), "");
  await fact("the agent goes on by itself", () => editor.text("agent_message_chunk").endsWith("It is built."));
  const rows = editor.of("tool_call");
  assert.match(rows.find(({ toolCallId }) => toolCallId.startsWith("notice-")).title, /\[status: completed, exit code: 0\]$/);
  assert.equal(rows.at(-1).title, "Read output from background task bash-1");
  await fact("no task is shown any more", () => editor.of("session_info_update").at(-1)._meta["dsh/tasks"].length === 0);

  const cancelled = editor.prompt("do something long");
  const long = await pidIn("long");
  await editor.peer.notify(agent.session.cancel, { sessionId: session });
  assert.deepEqual(await cancelled, { stopReason: "cancelled" });
  assert.ok(!alive(long), "a cancelled command ends");

  assert.deepEqual(await editor.prompt("keep something"), { stopReason: "end_turn" });
  for (const name of ["kept", "child"]) assert.ok(alive(await pidIn(name)));
});
for (const name of ["kept", "child"]) assert.ok(!alive(await pidIn(name)), "tasks end with their editor");

const asking = {
  name: "asking",
  turns: [
    { tool_calls: [bash("touch allowed")] },
    { tool_calls: [bash("touch refused")] },
    { text: "As you wish." },
  ],
};
writeFileSync(join(process.env.DSH_HOME, "config.toml"), '[approval]\nask = ["bash"]\n');
await Editor.with(asking, async (editor) => {
  editor.session = session;
  await editor.peer.request(agent.session.load, { sessionId: session, cwd: directory, mcpServers: [] });
  assert.deepEqual(
    editor.of("user_message_chunk").map(({ content }) => content.text),
    ["build it", "do something long", "keep something"],
  );
  assert.equal(editor.text("agent_message_chunk"), first.text("agent_message_chunk"), "the same text again");
  assert.deepEqual(editor.of("tool_call").slice(0, 4), first.of("tool_call").slice(0, 4), "the same cards again");

  const before = editor.of("tool_call_update").length;
  assert.deepEqual(await editor.prompt("ask me"), { stopReason: "end_turn" });
  assert.deepEqual(editor.questions.map(({ title }) => title), ["touch allowed", "touch refused"]);
  assert.deepEqual(editor.of("tool_call_update").slice(before).map(({ status }) => status), ["completed", "failed"]);
  assert.ok(existsSync(file("allowed")) && !existsSync(file("refused")));

  const elsewhere = { sessionId: "4e2b7c3a-0000-4000-8000-000000000000", cwd: directory, mcpServers: [] };
  await assert.rejects(editor.peer.request(agent.session.load, elsewhere), (error) => error.code === -32002);
  await editor.peer.request(agent.session.close, { sessionId: session });
  await assert.rejects(editor.prompt("anybody?"), (error) => error.code === -32002);
});

console.log("ok");
