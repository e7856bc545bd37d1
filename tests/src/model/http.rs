//! As much of HTTP/1.1 as a scripted server needs: one request for each connection.

use std::io;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::Request;

/// Reads one request with its body.
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader).await?;
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    let mut length = 0;
    loop {
        let field = line(&mut reader).await?;
        let Some((name, value)) = field.split_once(':') else {
            break;
        };
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        if name == "content-length" {
            length = value.parse().map_err(io::Error::other)?;
        }
        headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok(Request {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// Begins a stream of events, in chunks: who reads it need not see the connection close to know that it is whole.
pub(super) async fn begin_events(stream: &mut TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\
                connection: close\r\n\r\n";
    send(stream, head).await
}

/// Sends the events of a stream that was begun, and its end.
pub(super) async fn finish_events(stream: &mut TcpStream, events: &str) -> io::Result<()> {
    // An empty chunk would be the end itself.
    if !events.is_empty() {
        send(stream, &format!("{:x}\r\n{events}\r\n", events.len())).await?;
    }
    send(stream, "0\r\n\r\n").await
}

/// Answers with an error in the form that both wires have.
pub(super) async fn refuse(stream: &mut TcpStream, status: u16, message: &str) -> io::Result<()> {
    let body = json!({"type": "error", "error": {"type": "scripted_error", "message": message}}).to_string();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    send(stream, &(head + &body)).await
}

/// Sends whoever asks on to another place, with method and body.
pub(super) async fn redirect(stream: &mut TcpStream, url: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 307 Elsewhere\r\nlocation: {url}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    send(stream, &head).await
}

/// Sends text as it is.
async fn send(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}

/// The next line without its end; an empty one after the head.
async fn line(reader: &mut BufReader<&mut TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    Ok(line.trim_end().to_owned())
}
