//! Timestamps of a measurement's runs as a Parquet data set: one file for each run in the folder `rounds.parquet`.
//! pandas, Polars and DuckDB read the folder as one table, with a row for each round trip.
//!
//! [`Dataset::write`] writes a run after its end, never while it is measured. The file gets its name when it is
//! complete and on the disk, so a measurement that is killed leaves whole files only. Readers ignore the hidden file
//! that it may leave in the folder. [`Dataset::read`] returns the same [`Rounds`], from which a report can be made.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU64;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Encoding, Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{FileMetaData, KeyValue};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::recorder::Stamp;
use super::rounds::Rounds;
use crate::limits::{MAX_SAMPLES, ROW_GROUP_ROUNDS};

/// Name of the data set in the folder of a result.
const FOLDER: &str = "rounds.parquet";

const TIME: (Physical, Repetition) = (Physical::INT64, Repetition::OPTIONAL);
const NUMBER: (Physical, Repetition) = (Physical::INT32, Repetition::REQUIRED);
const FLAG: (Physical, Repetition) = (Physical::BOOLEAN, Repetition::REQUIRED);

/// Columns in the order of the file. Times are nanoseconds, null if the event did not happen.
const COLUMNS: [(&str, (Physical, Repetition)); 11] = [
    ("run", NUMBER),
    ("round", NUMBER),
    ("intended_ns", TIME),
    ("sent_ns", TIME),
    ("received_ns", TIME),
    ("replied_ns", TIME),
    ("returned_ns", TIME),
    ("lost", FLAG),
    ("late", FLAG),
    ("stage_cable_there_ns", TIME),
    ("stage_cable_back_ns", TIME),
];

/// Keys of the file's metadata, for the fields of [`Rounds`] that are not columns.
const PERIOD_NS: &str = "isolane.period_ns";
const DUPLICATES: &str = "isolane.duplicates";
/// Name of the clock that both ends share.
const CLOCK: &str = "isolane.clock";
/// Reason why the ends share no clock; a file has this key or [`CLOCK`].
const CLOCK_REFUSED: &str = "isolane.clock_refused";

/// Reasons why a data set cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// A file or folder could not be written. Choose another folder, or free space.
    #[error("cannot write {path}: {reason}")]
    Write {
        /// File or folder.
        path: PathBuf,
        /// Reason.
        reason: ParquetError,
    },
    /// A file or folder could not be opened.
    #[error("cannot read {path}: {source}")]
    Read {
        /// File or folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The file is damaged, or was not written by [`Dataset::write`].
    #[error(
        "{path} does not contain the timestamps of a run: {reason}. Remove it, or measure again"
    )]
    Content {
        /// File.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
}

/// Folder with a file of timestamps for each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    folder: PathBuf,
}

impl Dataset {
    /// Data set in the folder of a result. It need not exist.
    pub fn in_folder(folder: &Path) -> Dataset {
        Dataset {
            folder: folder.join(FOLDER),
        }
    }

    /// Folder of the data set.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Writes the timestamps of a run, and returns the file's path. Replaces the file of an earlier run of this number.
    pub fn write(&self, run: u16, rounds: &Rounds) -> std::result::Result<PathBuf, DatasetError> {
        let path = self.file(run);
        let write = || -> Result<()> {
            fs::create_dir_all(&self.folder)?;
            let partial = self.folder.join(format!(".run-{run:04}.partial"));
            let file = File::create(&partial)?;
            let written = write_rounds(BufWriter::new(file), run.into(), rounds);
            if let Err(error) = written.and_then(|()| Ok(fs::rename(&partial, &path)?)) {
                let _ = fs::remove_file(&partial);
                return Err(error);
            }
            // The synchronised folder makes the new name durable.
            Ok(File::open(&self.folder)?.sync_all()?)
        };
        match write() {
            Ok(()) => Ok(path),
            Err(reason) => Err(DatasetError::Write { path, reason }),
        }
    }

    /// Reads the timestamps of a run.
    pub fn read(&self, run: u16) -> std::result::Result<Rounds, DatasetError> {
        let path = self.file(run);
        let file = File::open(&path).map_err(|source| DatasetError::Read {
            path: path.clone(),
            source,
        })?;
        // The library panics on some damaged metadata, such as a negative offset.
        let read = catch_unwind(|| read_rounds(file, run.into()));
        let read = read.unwrap_or_else(|_| Err(ParquetError::General("damaged".to_owned())));
        read.map_err(|error| DatasetError::Content {
            path,
            reason: error.to_string(),
        })
    }

    fn file(&self, run: u16) -> PathBuf {
        self.folder.join(format!("run-{run:04}.parquet"))
    }
}

/// Writes all rounds and the end of the file, and waits until they are on the disk.
fn write_rounds(output: BufWriter<File>, run: i32, rounds: &Rounds) -> Result<()> {
    let column = |&(name, (physical, repetition)): &(&str, (Physical, Repetition))| {
        let column = Type::primitive_type_builder(name, physical);
        Ok(Arc::new(column.with_repetition(repetition).build()?))
    };
    let columns = COLUMNS.iter().map(column).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("round")
        .with_fields(columns)
        .build()?;
    let clock = match &rounds.clock {
        Ok(clock) => KeyValue::new(CLOCK.to_owned(), clock.clone()),
        Err(reason) => KeyValue::new(CLOCK_REFUSED.to_owned(), reason.clone()),
    };
    let number = |key: &str, value: u64| KeyValue::new(key.to_owned(), value.to_string());
    let metadata = vec![
        number(PERIOD_NS, rounds.period_ns),
        number(DUPLICATES, rounds.duplicates),
        clock,
    ];
    // Successive times differ by a period and some jitter: their differences need two bytes instead of eight.
    let mut properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(metadata));
    for (name, _) in COLUMNS.iter().filter(|(_, kind)| *kind == FLAG) {
        properties = properties.set_column_encoding(ColumnPath::from(*name), Encoding::PLAIN);
    }
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(output, Arc::new(schema), properties)?;
    let all = rounds.sent_ns.len();
    for start in (0..all).step_by(ROW_GROUP_ROUNDS) {
        let ids = start..all.min(start + ROW_GROUP_ROUNDS);
        let mut group = writer.next_row_group()?;
        write_column::<Int32Type>(&mut group, &vec![run; ids.len()], None)?;
        let numbers: Vec<i32> = ids.clone().map(|id| id as i32).collect();
        write_column::<Int32Type>(&mut group, &numbers, None)?;
        for stamps in [
            &rounds.intended_ns,
            &rounds.sent_ns,
            &rounds.received_ns,
            &rounds.replied_ns,
            &rounds.returned_ns,
        ] {
            write_times(
                &mut group,
                stamps[ids.clone()]
                    .iter()
                    .map(|time| time.map(NonZeroU64::get)),
            )?;
        }
        let lost: Vec<bool> = ids
            .clone()
            .map(|id| rounds.returned_ns[id].is_none())
            .collect();
        write_column::<BoolType>(&mut group, &lost, None)?;
        let late: Vec<bool> = ids.clone().map(|id| rounds.is_late(id)).collect();
        write_column::<BoolType>(&mut group, &late, None)?;
        for direction in [0, 1] {
            let of_cable = rounds
                .cable_ns
                .as_ref()
                .map(|cable_ns| &cable_ns[direction]);
            write_times(&mut group, ids.clone().map(|id| of_cable?[id]))?;
        }
        group.close()?;
    }
    let output = writer.into_inner()?;
    let file = output
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    Ok(file.sync_all()?)
}

fn write_times<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    times: impl Iterator<Item = Option<u64>>,
) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for time in times {
        levels.push(i16::from(time.is_some()));
        // Monotonic times reach the limit of i64 after 292 years.
        values.extend(time.map(|time| time as i64));
    }
    write_column::<Int64Type>(group, &values, Some(&levels))
}

/// Writes the next column of a row group. `levels` are 1 for a value and 0 for null.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("too many columns".to_owned()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Reads all rounds of a file that [`write_rounds`] wrote for this run.
fn read_rounds(file: File, run: i32) -> Result<Rounds> {
    let refuse = |reason: &str| ParquetError::General(reason.to_owned());
    let reader = SerializedFileReader::new(file)?;
    let metadata = reader.metadata().file_metadata();
    let columns = metadata.schema_descr().columns().iter();
    if !columns
        .map(|column| (column.name(), column.physical_type()))
        .eq(COLUMNS
            .iter()
            .map(|&(name, (physical, _))| (name, physical)))
    {
        return Err(refuse("its columns are not those of a data set of isolane"));
    }
    let all = usize::try_from(metadata.num_rows()).unwrap_or(usize::MAX);
    if all > MAX_SAMPLES as usize {
        return Err(refuse("it has too many rows"));
    }
    let mut times: [Vec<Option<u64>>; COLUMNS.len()] = Default::default();
    let mut rows = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let group = group.as_ref();
        let runs = read_column::<Int32Type>(group, 0)?;
        let numbers = read_column::<Int32Type>(group, 1)?;
        let is_next = |(offset, number)| number == Some((rows + offset) as i32);
        if runs.iter().any(|&of_row| of_row != Some(run))
            || !numbers.iter().copied().enumerate().all(is_next)
        {
            return Err(refuse(
                "a row has the number of another run, or is out of order",
            ));
        }
        rows += numbers.len();
        for (index, _) in COLUMNS
            .iter()
            .enumerate()
            .filter(|(_, (_, kind))| *kind == TIME)
        {
            for time in read_column::<Int64Type>(group, index)? {
                let time = time.map(u64::try_from).transpose();
                times[index].push(time.map_err(|_| refuse("a time is negative"))?);
            }
        }
    }
    if times
        .iter()
        .any(|column| !column.is_empty() && column.len() != all)
        || rows != all
    {
        return Err(refuse("its columns have different lengths"));
    }
    let [
        _,
        _,
        intended_ns,
        sent_ns,
        received_ns,
        replied_ns,
        returned_ns,
        _,
        _,
        there_ns,
        back_ns,
    ] = times;
    let stamps = |times: Vec<Option<u64>>| -> Vec<Stamp> {
        times
            .into_iter()
            .map(|time| NonZeroU64::new(time?))
            .collect()
    };
    let has_cable = there_ns.iter().chain(&back_ns).any(Option::is_some);
    let number = |key| value(metadata, key).and_then(|value| value.parse().ok());
    let clock = match value(metadata, CLOCK) {
        Some(clock) => Ok(clock),
        None => Err(value(metadata, CLOCK_REFUSED).ok_or_else(|| refuse("its clock is missing"))?),
    };
    let rounds = Rounds {
        intended_ns: stamps(intended_ns),
        sent_ns: stamps(sent_ns),
        received_ns: stamps(received_ns),
        replied_ns: stamps(replied_ns),
        returned_ns: stamps(returned_ns),
        cable_ns: has_cable.then_some([there_ns, back_ns]),
        duplicates: number(DUPLICATES).ok_or_else(|| refuse("its duplicates are missing"))?,
        period_ns: number(PERIOD_NS).ok_or_else(|| refuse("its period is missing"))?,
        clock,
    };
    let in_order = rounds.check_order();
    in_order.map_err(|error| ParquetError::General(error.to_string()))?;
    Ok(rounds)
}

/// Value of a key in the file's metadata.
fn value(metadata: &FileMetaData, key: &str) -> Option<String> {
    let mut entries = metadata.key_value_metadata()?.iter();
    entries.find(|entry| entry.key == key)?.value.clone()
}

/// Reads a column of a row group; `None` marks null.
fn read_column<T: DataType>(group: &dyn RowGroupReader, index: usize) -> Result<Vec<Option<T::T>>> {
    let rows = group.metadata().num_rows().clamp(0, MAX_SAMPLES.into()) as usize;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows {
        return Err(ParquetError::General("a column is too short".to_owned()));
    }
    // A required column has no levels.
    if levels.is_empty() {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels
        .into_iter()
        .map(|level| (level == 1).then(|| values.next()).flatten())
        .collect())
}

#[cfg(test)]
mod tests;
