//! Every listed model behind one registry, and the choice of backend.
