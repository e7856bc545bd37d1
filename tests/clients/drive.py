"""Drives `dsh mcp` with the official MCP client, the way a host program would.

Usage: drive.py MODE DSH DIRECTORY, MODE being `legacy` (the initialize handshake) or `auto` (the client's choice).
Every expectation is an assertion; the last line on success is `ok`.
"""

import os
import sys
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

DEADLINE = 30


def alive(pid):
    """A zombie is not alive."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


async def fact(what, holds):
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"never happened: {what}"
        await anyio.sleep(0.02)


async def pid_in(path):
    def written():
        return path.exists() and path.read_text().strip()

    await fact(f"{path.name} holds a process id", written)
    return int(path.read_text())


class Driver:
    def __init__(self, client, directory):
        self.client = client
        self.directory = directory

    async def call(self, tool, **arguments):
        """The texts of a call that succeeded."""
        with anyio.fail_after(DEADLINE):
            result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result
        return [block.text for block in result.content]

    async def background(self, command):
        texts = await self.call("bash", command=command, description="a test command", run_in_background=True)
        prefix = "started background task "
        assert texts[0].startswith(prefix), texts
        return texts[0].removeprefix(prefix)

    async def resource(self, task):
        with anyio.fail_after(DEADLINE):
            read = await self.client.read_resource(f"dsh://task/{task}", cache_mode="bypass")
        return read.contents[0].text

    async def until(self, task, status):
        """Watching a resource neither consumes output nor counts as being told."""
        end = time.monotonic() + DEADLINE
        while status not in (text := await self.resource(task)):
            assert time.monotonic() < end, f"{task} never became {status}: {text}"
            await anyio.sleep(0.02)


async def tools_are_small(driver):
    listed = await driver.client.list_tools()
    names = [tool.name for tool in listed.tools]
    assert names == ["bash", "task_kill", "task_list", "task_output"], names
    size = len(listed.model_dump_json(by_alias=True, exclude_none=True))
    assert size < 6 * 1024, size


async def two_tasks(driver):
    """Two run, both are listed, one is waited for, the other is killed. Returns the process ids."""
    short = await driver.background("echo $$ > short; until [ -e go ]; do sleep 0.05; done; echo finished")
    long = await driver.background("sleep 300 & echo $! > child; echo $$ > long; wait")
    pids = [await pid_in(driver.directory / name) for name in ("short", "long", "child")]
    rows = (await driver.call("task_list"))[0].splitlines()
    assert [row.split(" — ")[0] for row in rows] == [f"{short} [bash] running", f"{long} [bash] running"], rows

    (driver.directory / "go").touch()
    texts = await driver.call("task_output", task_id=short, wait=True, timeout_ms=20000)
    assert texts == ["finished\n[status: completed, exit code: 0]"], texts

    texts = await driver.call("task_kill", task_id=long, reason="no longer needed")
    assert texts == [f"requested cancellation of task {long}"], texts
    texts = await driver.call("task_output", task_id=long, wait=True, timeout_ms=20000)
    assert texts == ["(no new output)\n[status: killed, signal: SIGTERM]"], texts
    assert not any(alive(pid) for pid in pids), "what is said to have ended has ended"
    return pids


async def a_notice_comes_once(driver):
    # Gated, so that the end is not told with the acknowledgement of the start already.
    command = "until [ -e tell ]; do sleep 0.05; done; echo hello"
    task = await driver.background(command)
    (driver.directory / "tell").touch()
    await driver.until(task, "[status: completed, exit code: 0]")
    # The notice is there by the time this result is written.
    first = await driver.call("bash", command="sleep 0.5; echo next", description="a test command")
    second = await driver.call("bash", command="echo next", description="a test command")
    assert first[0] == second[0] == "next\n", (first, second)
    assert len(first) == 2 and len(second) == 1, (first, second)
    assert first[1].startswith(f"\nbackground task {task} (bash: {command}) finished [status: completed"), first
    assert "hello" in await driver.resource(task), "a resource stays readable"
    listed = await driver.client.list_resources(cache_mode="bypass")
    assert f"dsh://task/{task}" in [str(resource.uri) for resource in listed.resources], listed


async def a_cancelled_wait_leaves_the_task(driver):
    task = await driver.background("echo $$ > kept; exec sleep 300")
    pid = await pid_in(driver.directory / "kept")
    with anyio.move_on_after(0.3) as given_up:
        await driver.client.call_tool("task_output", {"task_id": task, "wait": True})
    assert given_up.cancelled_caught, "the wait had no other reason to end"
    rows = (await driver.call("task_list"))[0]
    assert f"{task} [bash] running" in rows, rows
    assert alive(pid)
    return pid


async def a_cancelled_command_ends(driver):
    command = "sleep 300 & echo $! > inner; echo $$ > outer; wait"
    async with anyio.create_task_group() as group:
        call = {"command": command, "description": "a test command"}
        group.start_soon(driver.client.call_tool, "bash", call)
        pids = [await pid_in(driver.directory / name) for name in ("outer", "inner")]
        group.cancel_scope.cancel()
    await fact("the cancelled command ends with its group", lambda: not any(alive(pid) for pid in pids))


async def a_wrong_call_is_an_error_result(driver):
    result = await driver.client.call_tool("task_output", {})
    assert result.is_error, result
    assert result.content[0].text == 'Error: invalid arguments: missing required property "task_id"', result


async def main(mode, dsh, directory):
    environment = {name: os.environ[name] for name in os.environ if name not in ("HOME", "PATH")}
    server = StdioServerParameters(command=dsh, args=["mcp"], cwd=directory, env=environment)
    async with Client(server, mode=mode) as client:
        driver = Driver(client, directory)
        await tools_are_small(driver)
        await two_tasks(driver)
        await a_notice_comes_once(driver)
        await a_wrong_call_is_an_error_result(driver)
        await a_cancelled_command_ends(driver)
        kept = await a_cancelled_wait_leaves_the_task(driver)
    # The client waits for the server's exit, and the server for the end of what it started.
    assert not alive(kept), "closing the connection ends its tasks"
    print("ok")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], Path(sys.argv[3]))
