//! What has to be there before a lane can be: each thing checked, with its remedy.
