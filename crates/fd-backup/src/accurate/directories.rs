//! The directories of an accurate list. Each component of a path is stored once.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// Number of a directory. The empty path is 0.
pub(super) type DirectoryId = u32;

/// A tree of directories. A path here is empty or ends with a `/`.
pub(super) struct Directories {
    nodes: Nodes,
    /// Numbers of directories, by parent and name.
    ids: HashTable<DirectoryId>,
    hasher: RandomState,
    /// The last path that was searched: files of one directory follow each other.
    last: Vec<u8>,
    last_id: Option<DirectoryId>,
}

struct Nodes {
    nodes: Vec<Node>,
    /// The components' names, one behind the other.
    names: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    parent: DirectoryId,
    /// End of its name in `names`; the name begins where that of the previous node ends.
    name_end: u32,
}

impl Directories {
    pub(super) fn new() -> Self {
        Self {
            nodes: Nodes { nodes: vec![Node::default()], names: Vec::new() },
            ids: HashTable::new(),
            hasher: RandomState::new(),
            last: Vec::new(),
            last_id: Some(0),
        }
    }

    /// The number of `path`, which is added if it is new. `None` if there are too many.
    pub(super) fn intern(&mut self, path: &[u8]) -> Option<DirectoryId> {
        if let (true, Some(id)) = (self.last == path, self.last_id) {
            return Some(id);
        }
        let mut id = 0;
        for name in components(path) {
            id = match self.child(id, name) {
                Some(child) => child,
                None => self.add(id, name)?,
            };
        }
        self.remember(path, Some(id));
        Some(id)
    }

    /// The number of `path`, if it is known.
    pub(super) fn find(&mut self, path: &[u8]) -> Option<DirectoryId> {
        if self.last == path {
            return self.last_id;
        }
        let mut id = Some(0);
        for name in components(path) {
            id = id.and_then(|id| self.child(id, name));
        }
        self.remember(path, id);
        id
    }

    /// Appends the path of a directory.
    pub(super) fn push_path(&self, id: DirectoryId, out: &mut Vec<u8>) {
        let mut chain = Vec::new();
        let mut at = id;
        while at != 0 {
            chain.push(at);
            at = self.nodes.key(at).0;
        }
        for id in chain.into_iter().rev() {
            out.extend_from_slice(self.nodes.key(id).1);
            out.push(b'/');
        }
    }

    /// Bytes of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.nodes.nodes.capacity() * size_of::<Node>() + self.nodes.names.capacity() + self.ids.allocation_size()
    }

    fn remember(&mut self, path: &[u8], id: Option<DirectoryId>) {
        self.last.clear();
        self.last.extend_from_slice(path);
        self.last_id = id;
    }

    fn child(&self, parent: DirectoryId, name: &[u8]) -> Option<DirectoryId> {
        let hash = self.hasher.hash_one((parent, name));
        self.ids.find(hash, |id| self.nodes.key(*id) == (parent, name)).copied()
    }

    fn add(&mut self, parent: DirectoryId, name: &[u8]) -> Option<DirectoryId> {
        let id = self.nodes.push(parent, name)?;
        let Self { ids, nodes, hasher, .. } = self;
        ids.insert_unique(hasher.hash_one((parent, name)), id, |id| hasher.hash_one(nodes.key(*id)));
        Some(id)
    }
}

impl Nodes {
    fn push(&mut self, parent: DirectoryId, name: &[u8]) -> Option<DirectoryId> {
        let id = u32::try_from(self.nodes.len()).ok()?;
        let name_end = u32::try_from(self.names.len() + name.len()).ok()?;
        self.names.extend_from_slice(name);
        self.nodes.push(Node { parent, name_end });
        Some(id)
    }

    /// Parent and name.
    fn key(&self, id: DirectoryId) -> (DirectoryId, &[u8]) {
        let node = |id: DirectoryId| self.nodes.get(id as usize).copied().unwrap_or_default();
        let start = id.checked_sub(1).map_or(0, |before| node(before).name_end);
        let Node { parent, name_end } = node(id);
        (parent, self.names.get(start as usize..name_end as usize).unwrap_or_default())
    }
}

/// The components of a path that is empty or ends with a `/`.
fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split_inclusive(|byte| *byte == b'/').map(|name| name.strip_suffix(b"/").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_returned_unchanged() {
        let mut directories = Directories::new();
        let paths: Vec<Vec<u8>> = (0..500)
            .flat_map(|n| [format!("/srv/{n}/"), format!("/srv/{n}/deep/er/"), format!("//odd{n}///x/")])
            .map(String::into_bytes)
            .chain([b"".to_vec(), b"/".to_vec(), b"//".to_vec(), b"relative/".to_vec(), b"/\xff\n/".to_vec()])
            .collect();
        let ids: Vec<DirectoryId> = paths.iter().map(|path| directories.intern(path).unwrap()).collect();
        for (path, id) in paths.iter().zip(&ids) {
            assert_eq!(directories.find(path), Some(*id));
            assert_eq!(directories.intern(path), Some(*id));
            let mut out = Vec::new();
            directories.push_path(*id, &mut out);
            assert_eq!(&out, path);
        }
        let mut distinct = ids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), paths.len());
    }

    #[test]
    fn unknown_paths_are_not_found() {
        let mut directories = Directories::new();
        directories.intern(b"/a/b/").unwrap();
        for path in [&b"/a/c/"[..], b"/a/b/c/", b"a/", b"//"] {
            assert_eq!(directories.find(path), None);
            assert_eq!(directories.find(path), None);
        }
        assert!(directories.find(b"/a/").is_some());
        assert_eq!(directories.intern(b"/a/c/"), directories.find(b"/a/c/"));
    }
}
