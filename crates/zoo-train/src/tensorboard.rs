use crate::metrics::Row;
use burn_zoo_checkpoint::write_atomically;
use burn_zoo_core::Result;
use prost::Message;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// TensorFlow's `Event` (tensorflow/core/util/event.proto), the fields that scalars need.
#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

/// TensorFlow's `Summary`.
#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

/// TensorFlow's `Summary.Value` with a `simple_value`.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, tag = "2")]
    simple_value: f32,
}

/// Writes the rows as a TensorBoard event file: loss and accuracy by split, learning rate, gradient
/// norm and throughput.
///
/// The file is written anew each time, so that a resumed run has no steps twice.
pub(crate) fn write_events(path: &Path, rows: &[Row]) -> Result<()> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since_epoch.map_or(0.0, |d| d.as_secs_f64());
    let end = rows.last().map_or(0.0, |row| row.seconds);
    let mut file = Vec::new();
    let version = Event {
        wall_time: now - end,
        file_version: Some("brain.Event:2".into()),
        ..Event::default()
    };
    append(&mut file, &version);
    for row in rows {
        let value = |name: &str, value: f64| Value {
            tag: format!("{name}/{}", row.split),
            simple_value: value as f32,
        };
        let mut values = vec![value("loss", row.loss), value("accuracy", row.accuracy)];
        if row.split == "train" {
            values.extend([
                value("learning_rate", row.lr),
                value("grad_norm", row.grad_norm),
                value("items_per_second", row.items_per_second),
            ]);
        }
        let event = Event {
            wall_time: now - end + row.seconds,
            step: row.step as i64,
            summary: Some(Summary { value: values }),
            ..Event::default()
        };
        append(&mut file, &event);
    }
    write_atomically(path, &file)
}

/// Appends a record: length, its checksum, contents, their checksum (TensorFlow's TFRecord).
fn append(file: &mut Vec<u8>, event: &Event) {
    let data = event.encode_to_vec();
    let length = (data.len() as u64).to_le_bytes();
    file.extend(length);
    file.extend(masked_crc(&length).to_le_bytes());
    file.extend(&data);
    file.extend(masked_crc(&data).to_le_bytes());
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_framed_and_read_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("events.out.tfevents.0");
        let row = |step: usize, split: &str| Row {
            step,
            epoch: 1,
            split: split.into(),
            loss: 0.5,
            accuracy: 0.25,
            lr: 0.1,
            grad_norm: 2.0,
            items_per_second: 10.0,
            input_wait: 0.0,
            seconds: step as f64,
        };
        write_events(&path, &[row(1, "train"), row(2, "valid")]).expect("writable");
        let bytes = std::fs::read(&path).expect("there");
        // CRC-32C of these digits is 0xe3069283, as its catalogue entry says.
        let known = 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(masked_crc(b"123456789"), known);
        let mut rest = &bytes[..];
        let mut events = Vec::new();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().expect("eight bytes")) as usize;
            let word =
                |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
            assert_eq!(word(8), masked_crc(&rest[..8]));
            let data = &rest[12..12 + length];
            assert_eq!(word(12 + length), masked_crc(data));
            events.push(Event::decode(data).expect("an event"));
            rest = &rest[16 + length..];
        }
        assert_eq!(events.len(), 3);
        assert_eq!(events[0].file_version.as_deref(), Some("brain.Event:2"));
        let values = |i: usize| events[i].summary.clone().expect("a summary").value;
        assert_eq!(
            (events[1].step, values(1).len(), values(1)[0].tag.as_str()),
            (1, 5, "loss/train")
        );
        assert_eq!(
            (events[2].step, values(2).len(), values(2)[1].simple_value),
            (2, 2, 0.25)
        );
    }
}
