//! The zoo's side of tools/bench/load.py.
//!
//! `load write FOLDER COUNT SIDE SHARD_BYTES`, `load read FOLDER COUNT SIDE`

#[cfg(not(target_os = "linux"))]
fn main() {
    panic!("memory is measured on Linux alone");
}

#[cfg(target_os = "linux")]
fn main() {
    use burn_zoo_tests::loading::{measure, write};
    use std::path::Path;

    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args[i].parse::<usize>().expect("a number");
    let folder = Path::new(&args[1]);
    match args[0].as_str() {
        "write" => write(folder, number(2), number(3), number(4)).expect("writable"),
        _ => {
            let (model, m) = measure(folder, number(2), number(3)).expect("it is loaded");
            let wanted: Vec<f32> = (0..number(2)).map(|i| i as f32).collect();
            assert_eq!(model.firsts(), wanted, "every matrix is in its place");
            println!(
                "{{\"seconds\": {}, \"peak_anonymous\": {}, \"model_bytes\": {}}}",
                m.seconds, m.peak_anonymous, m.model_bytes
            );
        }
    }
}
