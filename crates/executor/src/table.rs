//! Job table with generation-checked ids.

use alloc::vec::Vec;

use crate::job::{Job, JobConfig, JobId};

struct Line {
    /// Id of the current or the next job; changes with each use, so that old ids are stale.
    id: JobId,
    job: Option<Job>,
}

pub(crate) struct Table {
    /// Entries used so far. The capacity suffices for all, but memory is written at first use, because most
    /// participants have few jobs.
    lines: Vec<Line>,
    /// Free entries; the last one is used next.
    free: Vec<u16>,
    max_jobs: usize,
}

impl Table {
    pub(crate) fn new(max_jobs: usize) -> Table {
        Table {
            lines: Vec::with_capacity(max_jobs),
            free: Vec::with_capacity(max_jobs),
            max_jobs,
        }
    }

    /// Maximum number of jobs.
    pub(crate) fn len(&self) -> usize {
        self.max_jobs
    }

    /// Adds a job; `None` if the table is full.
    pub(crate) fn add(&mut self, config: JobConfig) -> Option<JobId> {
        let job = Some(Job::new(config));
        if let Some(index) = self.free.pop() {
            let line = &mut self.lines[usize::from(index)];
            line.job = job;
            return Some(line.id);
        }
        if self.lines.len() == self.max_jobs {
            return None;
        }
        let id = JobId::new(self.lines.len() as u16, 0);
        self.lines.push(Line { id, job });
        Some(id)
    }

    pub(crate) fn vacate(&mut self, index: u16) {
        let line = &mut self.lines[usize::from(index)];
        line.job = None;
        line.id = JobId::new(index, line.id.generation().wrapping_add(1));
        self.free.push(index);
    }

    #[inline]
    pub(crate) fn get(&self, id: JobId) -> Option<&Job> {
        let line = self.lines.get(id.index())?;
        match &line.job {
            Some(job) if line.id == id => Some(job),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        let line = self.lines.get_mut(id.index())?;
        match &mut line.job {
            Some(job) if line.id == id => Some(job),
            _ => None,
        }
    }

    /// Returns the job at an index taken from a queue. The job exists, because `remove` takes it out of every queue.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u16) -> &mut Job {
        match &mut self.lines[usize::from(index)].job {
            Some(job) => job,
            None => panic!("a queue names line {index}, which has no job"),
        }
    }

    #[inline]
    pub(crate) fn id_at(&self, index: u16) -> JobId {
        self.lines[usize::from(index)].id
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.lines
            .iter()
            .filter_map(|line| Some((line.id, line.job.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.lines.iter_mut().filter_map(|line| line.job.as_mut())
    }
}
