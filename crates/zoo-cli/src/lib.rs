//! The zoo command line: list, info, train, eval, predict.
