/// The multiple of 8 nearest to `channels`, but not less than 8 nor than nine tenths of it:
/// `_make_divisible` of the mobile networks (Sandler et al. 2018's code).
pub fn divisible_by_8(channels: f64) -> usize {
    let near = (((channels + 4.0) as usize) / 8 * 8).max(8);
    if (near as f64) < 0.9 * channels {
        near + 8
    } else {
        near
    }
}

#[cfg(test)]
mod tests {
    use super::divisible_by_8;

    #[test]
    fn channels_are_rounded_as_torchvision_rounds_them() {
        // From torchvision.models._utils._make_divisible(channels, 8).
        for (channels, want) in [
            (0.5, 8),
            (8.0, 8),
            (11.0, 16),
            (12.0, 16),
            (16.0, 16),
            (17.6, 16),
            (26.4, 24),
            (35.2, 32),
            (44.0, 48),
            (19.0, 24),
        ] {
            assert_eq!(divisible_by_8(channels), want, "{channels}");
        }
    }
}
