//! HTTP/1.1 by hand over one connection that is kept, so that the load generator costs little.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection, with what was read beyond the last answer.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("an option");
        Self { stream, buffer: Vec::with_capacity(16 * 1024) }
    }

    pub async fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.expect("the server reads");
    }

    /// The body of the next answer, which must be a success.
    pub async fn answer(&mut self) -> Vec<u8> {
        let (head, length) = self.head().await;
        let length = length.unwrap_or_else(|| panic!("an answer without a length: {head}"));
        while self.buffer.len() < length {
            self.more().await;
        }
        let rest = self.buffer.split_off(length);
        let body = std::mem::replace(&mut self.buffer, rest);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}{}", String::from_utf8_lossy(&body));
        body
    }

    /// Reads the head of an answer; gives its text and the length that it announces.
    pub async fn head(&mut self) -> (String, Option<usize>) {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                let head = std::mem::replace(&mut self.buffer, rest);
                let head = String::from_utf8_lossy(&head).into_owned();
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
                });
                return (head, length);
            }
            self.more().await;
        }
    }

    /// Takes what a stream says before its first frame.
    pub async fn opening(&mut self) {
        while !self.buffer.ends_with(b"\n\n\r\n") {
            self.more().await;
        }
        self.buffer.clear();
    }

    /// Whatever has been read, after reading more.
    pub async fn more(&mut self) -> &mut Vec<u8> {
        let count = self.stream.read_buf(&mut self.buffer).await.expect("the server answers");
        assert!(count > 0, "the server closed the connection");
        &mut self.buffer
    }
}

pub fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n");
    format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes()
}
