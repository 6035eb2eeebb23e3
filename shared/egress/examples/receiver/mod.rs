//! What the benchmarks of both clients send to.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// What a small request weighs.
pub(crate) const BODY: &[u8] = &[b'x'; 600];

/// A server on loopback that answers requests of [`BODY`]'s size on threads of its own; its port.
pub(crate) fn serve() -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_all(stream));
        }
    });
    Ok(port)
}

fn answer_all(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let size = stream.read(&mut piece)?;
        if size == 0 {
            return Ok(());
        }
        read.extend_from_slice(&piece[..size]);
        let head = read.windows(4).position(|four| four == b"\r\n\r\n");
        if head.is_some_and(|end| read.len() >= end + 4 + BODY.len()) {
            read.clear();
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
            )?;
        }
    }
}
