use rayon::prelude::*;
use std::ops::Range;

/// Images `[.., channels, height, width]` in memory.
#[derive(Clone, Copy)]
pub(super) struct Images<'a> {
    pub data: &'a [f32],
    pub channels: usize,
    /// Height and width.
    pub size: [usize; 2],
}

/// Some channels of some images with zeros around them.
pub(super) struct Padded<'a> {
    pub data: &'a [f32],
    /// From an image to the next.
    pub image: usize,
    /// From a channel to the next.
    pub plane: usize,
    /// From a row to the next.
    pub pitch: usize,
}

impl<'a> Padded<'a> {
    /// `size` rows and columns, of which the first `before` are zeros, as are those behind the image.
    ///
    /// Where nothing is to be added, that is the images' own memory.
    pub fn new(
        source: Images<'a>,
        images: Range<usize>,
        channels: Range<usize>,
        before: [usize; 2],
        size: [usize; 2],
        memory: &'a mut Vec<f32>,
        parallel: bool,
    ) -> Self {
        let [height, width] = source.size;
        let (plane, image) = (height * width, source.channels * height * width);
        if before == [0, 0] && size[0] <= height && size[1] <= width {
            return Self {
                data: &source.data[images.start * image + channels.start * plane..],
                image,
                plane,
                pitch: width,
            };
        }
        let area = size[0] * size[1];
        let len = images.len() * channels.len() * area;
        if memory.len() < len {
            memory.resize(len, 0.0);
        }
        let memory = &mut memory[..len];
        // A kernel with a stride beyond its padding may see nothing but zeros.
        let left = before[1].min(size[1]);
        let kept = width.min(size[1] - left);
        let fill = |(i, out): (usize, &mut [f32])| {
            let (n, c) = (
                images.start + i / channels.len(),
                channels.start + i % channels.len(),
            );
            let mut rows = source.data[n * image + c * plane..][..plane].chunks_exact(width);
            for (y, out) in out.chunks_exact_mut(size[1]).enumerate() {
                let row = if y < before[0] { None } else { rows.next() };
                match row {
                    None => out.fill(0.0),
                    Some(row) => {
                        out[..left].fill(0.0);
                        out[left..][..kept].copy_from_slice(&row[..kept]);
                        out[left + kept..].fill(0.0);
                    }
                }
            }
        };
        match parallel {
            true => memory.par_chunks_exact_mut(area).enumerate().for_each(fill),
            false => memory.chunks_exact_mut(area).enumerate().for_each(fill),
        }
        Self {
            data: memory,
            image: channels.len() * area,
            plane: area,
            pitch: size[1],
        }
    }
}
