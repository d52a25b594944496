//! A room as a file, for whoever may read it. It is read and sent page by page, and whether the reader may
//! still read is asked for each.

use crate::{
    app::App,
    auth::Caller,
    clock::Now,
    error::{Error, Result},
    render::untrusted::plain,
    services::{
        access::{self, ReadAccess},
        messages::to_messages,
        visitors,
    },
    store::{
        Conn,
        messages::Page,
        rooms::{RoomRow, Text},
    },
};
use protocol::{
    EXPORT_FORMAT, EXPORT_VERSION, ErrorCode, ExportEnd, ExportFormat, ExportLine, ExportedRoom,
    Message, RoomId,
};
use std::{
    fmt::Write,
    net::IpAddr,
    time::{Duration, SystemTime},
};

/// Messages that are read at once.
const PAGE: i64 = 200;
/// A visitor who has read as much as visitors may in a minute goes on a little later.
const VISITORS_WAIT: Duration = Duration::from_secs(2);

/// An export under way.
pub struct Export {
    app: App,
    caller: Caller,
    ip: IpAddr,
    room: RoomId,
    format: ExportFormat,
    /// What is sent next; nothing once the end was.
    part: Option<Part>,
    /// The last message that was sent, and the last that there will be.
    sent: i64,
    upto: i64,
    messages: i64,
    /// The day that the last message was of, as a text shows it.
    day: String,
}

enum Part {
    Head,
    Messages,
}

impl Export {
    /// Begins with the room as it is now.
    pub async fn begin(
        app: &App,
        caller: Caller,
        ip: IpAddr,
        room: RoomId,
        format: ExportFormat,
    ) -> Result<Self> {
        let mut export = Self {
            app: app.clone(),
            caller,
            ip,
            room,
            format,
            part: Some(Part::Head),
            sent: 0,
            upto: 0,
            messages: 0,
            day: String::new(),
        };
        let (_, row, is_member) = export.check_access().await?;
        if !is_member {
            visitors::count_read(app, ip, &export.room).await?;
        }
        export.upto = row.last_seq;
        Ok(export)
    }

    /// The next piece; nothing after the end.
    pub async fn next(&mut self) -> Result<Option<String>> {
        Ok(match self.part.take() {
            None => None,
            Some(Part::Head) => {
                self.part = Some(Part::Messages);
                Some(self.head().await?)
            }
            Some(Part::Messages) if self.sent < self.upto => {
                self.part = Some(Part::Messages);
                Some(self.page().await?)
            }
            Some(Part::Messages) => match self.format {
                ExportFormat::Jsonl => Some(line(&ExportLine::End(ExportEnd {
                    messages: self.messages,
                }))?),
                ExportFormat::Markdown => None,
            },
        })
    }

    /// The room, and whether the caller reads it as a member; operators read every room.
    async fn check_access(&self) -> Result<(Conn, RoomRow, bool)> {
        let mut conn = self.app.db.read().await?;
        if access::operator(&self.caller).is_ok() {
            let row = conn.room(&self.room).await?;
            return Ok((conn, row.ok_or_else(Error::room_not_found)?, true));
        }
        let read = access::reader(&mut conn, &self.caller, &self.room).await?;
        Ok(match read {
            ReadAccess::Member(entry) => (conn, entry.room, true),
            ReadAccess::Visitor(row) => (conn, *row, false),
        })
    }

    async fn head(&mut self) -> Result<String> {
        let (mut conn, row, is_member) = self.check_access().await?;
        let mut text_of = async |text| -> Result<Option<String>> {
            let found = match is_member {
                true => conn.text(&self.room, text).await?,
                false => None,
            };
            Ok(found
                .map(|text| text.content)
                .filter(|text| !text.is_empty()))
        };
        let room = ExportedRoom {
            format: EXPORT_FORMAT.to_owned(),
            version: EXPORT_VERSION,
            rules: text_of(Text::Rules).await?,
            data: text_of(Text::Data).await?,
            room_id: row.room_id,
            name: row.name,
            topic: row.topic,
            visibility: row.visibility,
            created_at: row.created_at,
            exported_at: Now::get().seconds(),
        };
        match self.format {
            ExportFormat::Jsonl => line(&ExportLine::Room(Box::new(room))),
            ExportFormat::Markdown => Ok(title(&room, self.upto)),
        }
    }

    async fn page(&mut self) -> Result<String> {
        let (mut conn, mut row, is_member) = self.check_access().await?;
        if !is_member && self.sent > 0 {
            drop(conn);
            self.wait_as_visitor().await?;
            (conn, row, _) = self.check_access().await?;
        }
        let page = Page {
            since: self.sent,
            limit: PAGE,
            ..Page::default()
        };
        let mut rows = conn.messages(&self.room, &page).await?;
        rows.retain(|row| row.seq <= self.upto);
        let messages = to_messages(&mut conn, &row, rows, None).await?;
        drop(conn);
        let mut text = String::new();
        self.sent = messages.last().map_or(self.upto, |last| last.seq);
        for message in messages {
            self.messages += 1;
            match self.format {
                ExportFormat::Jsonl => {
                    text.push_str(&line(&ExportLine::Message(Box::new(message)))?)
                }
                ExportFormat::Markdown => self.write_message(&mut text, &message),
            }
        }
        Ok(text)
    }

    /// Visitors read no faster this way than page by page.
    async fn wait_as_visitor(&self) -> Result<()> {
        loop {
            match visitors::count_read(&self.app, self.ip, &self.room).await {
                Err(limited) if limited.code() == ErrorCode::RateLimited => {}
                counted => return counted,
            }
            tokio::select! {
                () = tokio::time::sleep(VISITORS_WAIT) => {}
                () = self.app.shutdown.begun() => {
                    return Err(Error::unavailable("The server is shutting down"));
                }
            }
        }
    }

    fn write_message(&mut self, text: &mut String, message: &Message) {
        let time = rfc3339(message.created_at);
        let (day, time) = time.split_once('T').unwrap_or((&time, ""));
        if day != self.day {
            self.day = day.to_owned();
            let _ = write!(text, "\n## {day}\n");
        }
        let name = message.sender_user_name.as_deref();
        let name = plain(name.unwrap_or(&message.sender_user_id));
        let answers = message.reply_to_seq.map(|seq| format!(" · answers #{seq}"));
        let edited = message.edited_at.map(|_| " · edited");
        let _ = write!(
            text,
            "\n**{name}** · {} · #{}{}{}\n\n",
            time.get(..5).unwrap_or(time),
            message.seq,
            answers.unwrap_or_default(),
            edited.unwrap_or_default(),
        );
        if message.deleted {
            text.push_str("*deleted*\n");
        }
        // Quoted, so that no text can pass for another message.
        for part in message.content.lines() {
            let _ = writeln!(text, "> {part}");
        }
    }
}

fn line(line: &ExportLine) -> Result<String> {
    let mut text = serde_json::to_string(line).map_err(Error::internal)?;
    text.push('\n');
    Ok(text)
}

fn title(room: &ExportedRoom, messages: i64) -> String {
    let mut text = format!("# {}\n\n", plain(&room.name));
    if !room.topic.is_empty() {
        let _ = write!(text, "{}\n\n", plain(&room.topic));
    }
    let _ = writeln!(
        text,
        "Room {}, {messages} messages, exported {}. Times are UTC.",
        room.room_id,
        rfc3339(room.exported_at)
    );
    for (heading, content) in [("Rules", &room.rules), ("Data", &room.data)] {
        if let Some(content) = content {
            let _ = write!(text, "\n## {heading}\n\n");
            for part in content.lines() {
                let _ = writeln!(text, "> {part}");
            }
        }
    }
    text
}

fn rfc3339(seconds: i64) -> String {
    // humantime knows years up to 9999.
    let seconds = u64::try_from(seconds)
        .unwrap_or_default()
        .min(253_402_300_799);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(time).to_string()
}
