use burn::tensor::TensorData;

/// How a parameter's numbers lie in a file, where not as in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A matrix `[a, b]` is stored as `[b, a]`, as in GPT-2's `Conv1D`.
    Transposed,
    /// A matrix `[a, b]` is stored as a 1×1 convolution `[a, b, 1, 1]`.
    Pointwise,
    /// The rows of each of so many heads lie as pairs of neighbours, `0, n/2, 1, n/2 + 1…`, as llama.cpp keeps
    /// the queries and keys of rotary positions.
    RotaryPairs {
        /// Heads.
        heads: usize,
    },
    /// The parameter is some of the rows of a packed tensor, as queries, keys and values are that
    /// come from one projection. Comes last in a list of layouts.
    Rows {
        /// The first of its rows.
        at: usize,
        /// Rows of the whole.
        of: usize,
    },
}

impl Layout {
    /// The stored shape of a parameter of this shape.
    pub(crate) fn stored(layouts: &[Layout], shape: &[usize]) -> Vec<usize> {
        let mut shape = shape.to_vec();
        for layout in layouts.iter().rev() {
            match layout {
                Layout::Transposed => shape.reverse(),
                Layout::Pointwise => shape.extend([1, 1]),
                Layout::RotaryPairs { .. } => {}
                Layout::Rows { of, .. } => {
                    if let Some(rows) = shape.first_mut() {
                        *rows = *of;
                    }
                }
            }
        }
        shape
    }

    /// The stored row of each row of a matrix, where the layouts change nothing but their order.
    pub(crate) fn order(layouts: &[Layout], rows: usize) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..rows).collect();
        for layout in layouts {
            let Layout::RotaryPairs { heads } = layout else {
                return None;
            };
            let row = |i: usize| paired(rows / (*heads).max(1), i, first_halves);
            order = (0..rows).map(|i| order[row(i)]).collect();
        }
        Some(order)
    }

    /// The parameter of this shape from the stored numbers, whose shape was checked.
    pub(crate) fn load(layouts: &[Layout], mut data: TensorData, shape: &[usize]) -> TensorData {
        for layout in layouts {
            data = match layout {
                Layout::Transposed => transposed(&data),
                Layout::Pointwise => reshaped(data, |shape| shape.truncate(2)),
                Layout::RotaryPairs { heads } => in_pairs(&data, *heads, first_halves),
                Layout::Rows { at, of } => {
                    let row = data.as_bytes().len() / (*of).max(1);
                    let rows = shape.first().copied().unwrap_or_default();
                    let bytes = data.as_bytes()[at * row..(at + rows) * row].to_vec();
                    TensorData::from_bytes_vec(bytes, shape.to_vec(), data.dtype)
                }
            };
        }
        data
    }

    /// The stored tensor from its parameters, in the order of their rows.
    pub(crate) fn store(layouts: &[Layout], parts: Vec<TensorData>) -> TensorData {
        let mut parts = parts.into_iter();
        let Some(mut data) = parts.next() else {
            return TensorData::new(Vec::<f32>::new(), [0]);
        };
        if let Some(Layout::Rows { of, .. }) = layouts.last() {
            let mut shape = data.shape.to_vec();
            shape[0] = *of;
            let mut bytes = data.as_bytes().to_vec();
            for part in parts {
                bytes.extend_from_slice(part.as_bytes());
            }
            data = TensorData::from_bytes_vec(bytes, shape, data.dtype);
        }
        for layout in layouts.iter().rev() {
            data = match layout {
                Layout::Transposed => transposed(&data),
                Layout::Pointwise => reshaped(data, |shape| shape.extend([1, 1])),
                Layout::RotaryPairs { heads } => {
                    in_pairs(&data, *heads, |half, i| i % 2 * half + i / 2)
                }
                Layout::Rows { .. } => data,
            };
        }
        data
    }
}

fn reshaped(mut data: TensorData, change: impl Fn(&mut Vec<usize>)) -> TensorData {
    let mut shape = data.shape.to_vec();
    change(&mut shape);
    data.shape = shape.into();
    data
}

/// Where row `i` of half a head is among pairs of neighbours.
fn first_halves(half: usize, i: usize) -> usize {
    2 * (i % half) + i / half
}

/// The row that row `i` comes from, in heads of so many rows.
fn paired(head: usize, i: usize, from: impl Fn(usize, usize) -> usize) -> usize {
    i / head * head + from(head / 2, i % head)
}

/// The rows of each head in another order: row `i` comes from `from(half a head, i)`.
fn in_pairs(data: &TensorData, heads: usize, from: impl Fn(usize, usize) -> usize) -> TensorData {
    let rows = data.shape.first().copied().unwrap_or_default();
    let (head, bytes) = (rows / heads.max(1), data.as_bytes());
    let row = bytes.len() / rows.max(1);
    let mut ordered = Vec::with_capacity(bytes.len());
    for i in 0..rows {
        let at = paired(head, i, &from);
        ordered.extend_from_slice(&bytes[at * row..(at + 1) * row]);
    }
    TensorData::from_bytes_vec(ordered, data.shape.clone(), data.dtype)
}

/// `[a, b]` as `[b, a]`.
fn transposed(data: &TensorData) -> TensorData {
    let [rows, columns] = [data.shape[0], data.shape[1]];
    let size = data.dtype.size();
    let from = data.as_bytes();
    let mut bytes = Vec::with_capacity(from.len());
    for column in 0..columns {
        for row in 0..rows {
            let at = (row * columns + column) * size;
            bytes.extend_from_slice(&from[at..at + size]);
        }
    }
    TensorData::from_bytes_vec(bytes, [columns, rows], data.dtype)
}
