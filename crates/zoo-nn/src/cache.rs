use burn::tensor::{Tensor, backend::Backend};

/// Keys and values of the tokens that a decoder has seen, layer by layer.
#[derive(Clone, Debug)]
pub struct KeyValueCache<B: Backend> {
    /// One for each layer.
    pub layers: Vec<LayerCache<B>>,
    /// Tokens seen.
    pub seen: usize,
}

/// Keys and values of one layer, `[batch, key_value_heads, tokens, head_dim]`.
///
/// Without a window there is memory for `capacity` tokens from the first one on; with one, no more than the
/// window's tokens are kept.
#[derive(Clone, Debug)]
pub struct LayerCache<B: Backend> {
    held: Option<[Tensor<B, 4>; 2]>,
    len: usize,
    capacity: usize,
    window: Option<usize>,
}

impl<B: Backend> KeyValueCache<B> {
    /// Nothing seen yet, by layers with these windows; there is room for `capacity` tokens.
    pub fn new(windows: impl IntoIterator<Item = Option<usize>>, capacity: usize) -> Self {
        let layer = |window| LayerCache {
            held: None,
            len: 0,
            capacity,
            window,
        };
        Self {
            layers: windows.into_iter().map(layer).collect(),
            seen: 0,
        }
    }

    /// Tokens it has room for.
    pub fn capacity(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.capacity)
    }

    /// Keys that a layer with this window still holds.
    pub fn held(&self, window: Option<usize>) -> usize {
        let layer = self.layers.iter().find(|layer| layer.window == window);
        layer.map_or(0, |layer| layer.len)
    }
}

impl<B: Backend> LayerCache<B> {
    /// Takes the keys and values of new tokens, and gives those of all tokens it holds.
    pub fn update(&mut self, key: Tensor<B, 4>, value: Tensor<B, 4>) -> [Tensor<B, 4>; 2] {
        let tokens = key.dims()[2];
        match self.window {
            Some(window) => {
                let all = match self.held.take() {
                    Some([keys, values]) => [
                        Tensor::cat(vec![keys, key], 2),
                        Tensor::cat(vec![values, value], 2),
                    ],
                    None => [key, value],
                };
                let held = self.len + tokens;
                // A token sees itself and the window's tokens before it.
                self.len = held.min(window.saturating_sub(1).max(1));
                let last = |all: &Tensor<B, 4>| all.clone().narrow(2, held - self.len, self.len);
                self.held = Some([last(&all[0]), last(&all[1])]);
                all
            }
            None => {
                let at = self.len;
                self.len += tokens;
                let room = |new: &Tensor<B, 4>| {
                    let [batch, heads, _, head_dim] = new.dims();
                    let options = (&new.device(), new.dtype());
                    Tensor::zeros([batch, heads, self.capacity.max(tokens), head_dim], options)
                };
                let held = self.held.take();
                let [keys, values] = held.unwrap_or_else(|| [room(&key), room(&value)]);
                let written = |all: Tensor<B, 4>, new: Tensor<B, 4>| {
                    let [batch, heads, _, head_dim] = new.dims();
                    all.slice_assign([0..batch, 0..heads, at..at + tokens, 0..head_dim], new)
                };
                let held = [written(keys, key), written(values, value)];
                let seen = held.clone().map(|all| all.narrow(2, 0, self.len));
                self.held = Some(held);
                seen
            }
        }
    }
}
