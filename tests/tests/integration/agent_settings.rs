//! What a deployment can set about the waking of agents.

use dsh_agent_core::{CompletionDelivery, Config};
use tests::Room;

fn read(room: &Room, text: &str) -> Result<Config, String> {
    let file = room.file("config.toml");
    std::fs::write(&file, text).expect("a file");
    Config::from_file(&file).map_err(|error| error.to_string())
}

#[test]
fn t60_the_end_of_a_task_wakes_three_times_unless_it_is_said_otherwise() {
    let room = Room::new();
    let defaults = read(&room, "").expect("valid").tool_tasks;
    assert_eq!(defaults.completion_delivery, CompletionDelivery::Wakeup);
    assert_eq!(defaults.max_consecutive_wakes, 3);
    let quiet = read(&room, "[tool_tasks]\ncompletion_delivery = \"quiet\"\n").expect("valid");
    assert_eq!(quiet.tool_tasks.completion_delivery, CompletionDelivery::Quiet);
    let refused = read(&room, "[tool_tasks]\ncompletion_delivery = \"loudly\"\n").expect_err("unknown");
    assert!(refused.contains("tool_tasks.completion_delivery"), "{refused}");
}

#[test]
fn t61_wakes_are_counted_in_whole_numbers() {
    let room = Room::new();
    for wrong in ["inf", "2.5", "-1", "\"3\"", "0"] {
        let refused = read(&room, &format!("[tool_tasks]\nmax_consecutive_wakes = {wrong}\n"));
        let refused = refused.expect_err("refused");
        assert!(
            refused.contains("tool_tasks.max_consecutive_wakes"),
            "{wrong}: {refused}"
        );
    }
    let one = read(&room, "[tool_tasks]\nmax_consecutive_wakes = 1\n").expect("valid");
    assert_eq!(one.tool_tasks.max_consecutive_wakes, 1);
}
