use burn_zoo_image::Image;
use std::fmt::Write;

/// Draws images side by side with half blocks in 24-bit colour, each with a caption below.
/// A line holds as many as fit into `columns` characters.
pub fn draw_images(images: &[(Image, String)], columns: usize) -> String {
    const SIDE: usize = 16;
    const GAP: usize = 2;
    let per_line = ((columns + GAP) / (SIDE + GAP)).max(1);
    let mut text = String::new();
    for line in images.chunks(per_line) {
        for row in 0..SIDE / 2 {
            for (image, _) in line {
                for column in 0..SIDE {
                    let [top, bottom] =
                        [2 * row, 2 * row + 1].map(|y| pixel(image, column, y, SIDE));
                    // Writing to a string cannot fail.
                    let _ = write!(
                        text,
                        "\x1b[38;2;{};{};{}m\x1b[48;2;{};{};{}m▀",
                        top[0], top[1], top[2], bottom[0], bottom[1], bottom[2]
                    );
                }
                text.push_str("\x1b[0m");
                text.push_str(&" ".repeat(GAP));
            }
            text.push('\n');
        }
        for (_, caption) in line {
            let caption: String = caption.chars().take(SIDE).collect();
            let _ = write!(text, "{caption:<width$}", width = SIDE + GAP);
        }
        text.push_str("\n\n");
    }
    text
}

/// The colour at (x, y) of an image seen as `side` × `side` points.
fn pixel(image: &Image, x: usize, y: usize, side: usize) -> [u8; 3] {
    let column = (x * image.width / side).min(image.width - 1);
    let row = (y * image.height / side).min(image.height - 1);
    let at = (row * image.width + column) * image.channels;
    match image.channels {
        1 => [image.pixels[at]; 3],
        _ => [image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]],
    }
}
