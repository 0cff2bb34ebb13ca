//! The dependencies between files: follows every path in the code to the file that defines its
//! name, through all re-exports.

use std::collections::BTreeMap;

use crate::modules::Crate;

/// From each file to the files whose items it names, with one of the paths by which it does.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// What a path refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Module(usize),
    /// An item defined by this module.
    Item(usize),
    /// An item of another crate.
    Outside,
}

/// The names being looked up, each with its module. A name whose lookup leads back to itself
/// resolves to nothing, or to the module of that name.
type Open<'a> = Vec<(usize, &'a str)>;

impl Crate {
    /// All arrows between the crate's files. Declaring or importing a module makes no arrow, but
    /// using an item of it does. A re-export makes one only if the file itself uses the name.
    pub(crate) fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, module) in self.modules.iter().enumerate() {
            let mut add = |found, path: &[String]| {
                let Found::Item(to) = found else { return };
                let (from, to) = (&module.file, &self.modules[to].file);
                if from != to {
                    let tos = arrows.entry(from.clone()).or_default();
                    tos.entry(to.clone()).or_insert_with(|| path.join("::"));
                }
            };
            for import in &module.imports {
                let is_used =
                    |name: &String| !import.is_re_export || module.mentions.contains(name);
                match (&import.name, self.resolve(from, &import.path, &mut Open::new())) {
                    (Some(name), found) if is_used(name) => add(found, &import.path),
                    (None, Found::Module(to)) if !import.is_re_export => {
                        add(Found::Item(to), &import.path);
                    }
                    _ => {}
                }
            }
            for path in &module.paths {
                add(self.resolve(from, path, &mut Open::new()), path);
            }
        }
        arrows
    }

    /// Follows a path that is written in a module.
    fn resolve<'a>(&'a self, from: usize, path: &'a [String], open: &mut Open<'a>) -> Found {
        let Some((first, mut rest)) = path.split_first() else { return Found::Module(from) };
        let mut module = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent,
            name => match self.look_up(from, name, rest.is_empty(), open) {
                Some(Found::Module(module)) => module,
                Some(found) => return found,
                None => return Found::Outside,
            },
        };
        while let Some((name, behind)) = rest.split_first() {
            rest = behind;
            if name == "super" {
                module = self.modules[module].parent;
                continue;
            }
            match self.look_up(module, name, rest.is_empty(), open) {
                Some(Found::Module(child)) => module = child,
                Some(found) => return found,
                // A macro defined it.
                None => return Found::Item(module),
            }
        }
        Found::Module(module)
    }

    /// What a name means in a module. A module and an item may share a name: at the end of a path
    /// it is the item.
    fn look_up<'a>(
        &'a self,
        module: usize,
        name: &'a str,
        is_last: bool,
        open: &mut Open<'a>,
    ) -> Option<Found> {
        let here = &self.modules[module];
        let child = here.children.get(name).map(|&child| Found::Module(child));
        if !is_last && child.is_some() {
            return child;
        }
        if here.items.contains(name) {
            return Some(Found::Item(module));
        }
        if module == 0
            && let Some(&defined) = self.exported_macros.get(name)
        {
            return Some(Found::Item(defined));
        }
        if open.contains(&(module, name)) {
            return child;
        }
        open.push((module, name));
        let found = self.imported(module, name, is_last, open);
        open.pop();
        found.or(child)
    }

    /// What a name means that a module imports, either by name or by a glob of another module.
    fn imported<'a>(
        &'a self,
        module: usize,
        name: &'a str,
        is_last: bool,
        open: &mut Open<'a>,
    ) -> Option<Found> {
        let imports = &self.modules[module].imports;
        let own = imports.iter().find(|import| import.name.as_deref() == Some(name));
        if let Some(own) = own {
            return Some(self.resolve(module, &own.path, open));
        }
        imports.iter().filter(|import| import.name.is_none()).find_map(|all| {
            match self.resolve(module, &all.path, open) {
                Found::Module(other) => self.look_up(other, name, is_last, open),
                _ => None,
            }
        })
    }
}
