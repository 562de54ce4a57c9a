/// What a download tells while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A file begins, or goes on.
    Begin {
        /// Its name.
        name: &'a str,
        /// The server it comes from.
        from: &'a str,
        /// Its length, where the server says it.
        bytes: Option<u64>,
        /// How much of it is there already.
        done: u64,
    },
    /// So many bytes more came.
    More(u64),
    /// No more bytes come for now.
    End,
    /// A line for the user.
    Note(String),
}

/// Who is told.
pub(crate) type Tell<'a> = dyn FnMut(Progress) + 'a;
