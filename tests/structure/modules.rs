//! The modules of a crate, parsed from its sources: what each module defines, imports and names.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Token, tokens};

/// Reads a file of the crate. Returns `None` if there is no such file.
pub(crate) type ReadFile<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A crate, without the code that is compiled only for tests. The first module is the root.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) modules: Vec<Module>,
    /// Exported macros. They are named from the root, wherever they are defined.
    pub(crate) exported_macros: BTreeMap<String, usize>,
    /// The paths of the files of modules that are compiled only for tests.
    pub(crate) test_files: BTreeSet<String>,
    /// Modules that are declared but have no file.
    pub(crate) without_file: Vec<String>,
}

/// A module. A file may hold several.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Its path, relative to `src`.
    pub(crate) file: String,
    pub(crate) parent: usize,
    pub(crate) children: BTreeMap<String, usize>,
    /// The items defined in it, except those defined by macros.
    pub(crate) items: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// Paths of several names in its code.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// Names that begin a path in its code, or stand alone.
    pub(crate) mentions: BTreeSet<String>,
}

/// One name that a `use` imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// The name it gets in this module; `None` for a glob (`*`).
    pub(crate) name: Option<String>,
    /// Whether it is re-exported (`pub`, with any visibility).
    pub(crate) is_re_export: bool,
}

impl Crate {
    /// Reads a crate from its root, `lib.rs`.
    pub(crate) fn read(read_file: ReadFile<'_>) -> Crate {
        let mut crate_ = Crate::default();
        let source = read_file("lib.rs").expect("a crate has a root");
        let module = Module { file: "lib.rs".into(), ..Module::default() };
        crate_.modules.push(module);
        Reader { crate_: &mut crate_, read_file, tokens: &tokens(&source), at: 0 }
            .module(0, String::new());
        crate_
    }
}

/// The position of the parser in the tokens of a file.
struct Reader<'r, 't> {
    crate_: &'r mut Crate,
    read_file: ReadFile<'r>,
    tokens: &'r [Token<'t>],
    at: usize,
}

/// The attributes of the next item, as far as they matter here.
#[derive(Debug, Default)]
struct Attributes {
    is_for_tests: bool,
    is_exported: bool,
    path: Option<String>,
}

impl<'t> Reader<'_, 't> {
    fn peek(&self, ahead: usize) -> Option<Token<'t>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn name(&self, ahead: usize) -> Option<&'t str> {
        match self.peek(ahead) {
            Some(Token::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn is_mark(&self, ahead: usize, mark: char) -> bool {
        self.peek(ahead) == Some(Token::Mark(mark))
    }

    /// Reads up to the brace that closes the module, or the end of its file. `folder` is the folder
    /// of its children's files: empty, or with a trailing slash.
    fn module(&mut self, module: usize, folder: String) {
        let mut depth = 0usize;
        let mut attributes = Attributes::default();
        while let Some(token) = self.peek(0) {
            match token {
                Token::Mark('#') if self.is_mark(1, '[') || self.is_mark(1, '!') => {
                    self.attribute(&mut attributes);
                    continue;
                }
                _ if attributes.is_for_tests => self.skip_tests(module, &folder, &attributes),
                Token::Mark('}') if depth == 0 => return,
                Token::Mark(mark) => {
                    depth = match mark {
                        '{' | '(' | '[' => depth + 1,
                        '}' | ')' | ']' => depth.saturating_sub(1),
                        _ => depth,
                    };
                    self.at += 1;
                }
                Token::Name("mod") if self.name(1).is_some() => {
                    self.child(module, &folder, &attributes);
                }
                Token::Name("pub" | "use") => {
                    if !self.visible(module) {
                        // The attributes belong to the item after the `pub`.
                        continue;
                    }
                }
                Token::Name(name) => self.word(module, name, depth == 0, &attributes),
                Token::Text(_) | Token::PathSeparator => self.at += 1,
            }
            attributes = Attributes::default();
        }
    }

    /// Reads one attribute, and continues after it.
    fn attribute(&mut self, attributes: &mut Attributes) {
        let begin = self.at + 1 + usize::from(self.is_mark(1, '!'));
        self.at = begin;
        self.skip_group();
        let inner: Vec<Token<'_>> = self.tokens[begin + 1..self.at - 1].to_vec();
        match inner[..] {
            [Token::Name("path"), Token::Mark('='), Token::Text(path)] => {
                attributes.path = Some(path.into());
            }
            [Token::Name("macro_export"), ..] => attributes.is_exported = true,
            [Token::Name("cfg"), Token::Mark('('), Token::Name("test"), Token::Mark(')')] => {
                attributes.is_for_tests = true;
            }
            [
                Token::Name("cfg"),
                Token::Mark('('),
                Token::Name("all"),
                Token::Mark('('),
                ref all @ ..,
            ] => {
                let mut depth = 0;
                for token in all {
                    match token {
                        Token::Mark('(') => depth += 1,
                        Token::Mark(')') => depth -= 1,
                        Token::Name("test") if depth == 0 => attributes.is_for_tests = true,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Skips the group that opens here.
    fn skip_group(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.peek(0) {
            self.at += 1;
            match token {
                Token::Mark('{' | '(' | '[') => depth += 1,
                Token::Mark('}' | ')' | ']') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips code that is only for tests. The files of a test module are recorded, but not their
    /// contents.
    fn skip_tests(&mut self, module: usize, folder: &str, attributes: &Attributes) {
        self.skip_visibility();
        if self.name(0) != Some("mod") || !self.is_mark(2, ';') {
            return self.skip_item();
        }
        let mut apart = Crate::default();
        let file = self.crate_.modules[module].file.clone();
        apart.modules.push(Module { file, ..Module::default() });
        let mut reader = Reader {
            crate_: &mut apart,
            read_file: self.read_file,
            tokens: self.tokens,
            at: self.at,
        };
        reader.child(0, folder, attributes);
        self.at = reader.at;
        let files = apart.modules.into_iter().skip(1).map(|module| module.file);
        self.crate_.test_files.extend(files.chain(apart.test_files));
        self.crate_.without_file.extend(apart.without_file);
    }

    /// Skips an item, a field or a statement.
    fn skip_item(&mut self) {
        let first = self.name(0);
        // A block does not end these. A comma does not end an item that may have type parameters.
        let ends_with_semicolon = matches!(first, Some("use" | "static" | "type" | "let"))
            || (first == Some("const") && self.name(1) != Some("fn"));
        let has_parameters = matches!(
            first,
            Some(
                "fn" | "impl" | "struct" | "enum" | "trait" | "unsafe" | "const" | "async" | "mod"
            )
        );
        while let Some(token) = self.peek(0) {
            match token {
                Token::Mark(';') => break,
                Token::Mark(',') if !has_parameters => break,
                Token::Mark('}' | ')' | ']') => return,
                Token::Mark('{') if !ends_with_semicolon => return self.skip_group(),
                Token::Mark('{' | '(' | '[') => self.skip_group(),
                _ => self.at += 1,
            }
        }
        self.at += 1;
    }

    /// `mod name;` or `mod name { … }`.
    fn child(&mut self, module: usize, folder: &str, attributes: &Attributes) {
        let name = self.name(1).expect("seen").to_string();
        let is_inline = self.is_mark(2, '{');
        self.at += 3;
        if is_inline {
            let file = self.crate_.modules[module].file.clone();
            let child = self.add(module, &name, file);
            self.module(child, format!("{folder}{name}/"));
            self.at += 1;
            return;
        }
        let usual = || [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")].to_vec();
        // A `path` attribute is relative to the folder of the file that has it. Unless that file is
        // a `mod.rs` or `lib.rs`, its children's files are elsewhere.
        let own_folder = folder_of(&self.crate_.modules[module].file);
        let paths =
            attributes.path.as_ref().map_or_else(usual, |path| vec![format!("{own_folder}{path}")]);
        let found = paths.into_iter().find_map(|path| Some(((self.read_file)(&path)?, path)));
        let Some((source, path)) = found else {
            let file = &self.crate_.modules[module].file;
            return self.crate_.without_file.push(format!("{name} of {file}"));
        };
        let child = self.add(module, &name, path.clone());
        let is_folders = path.ends_with("/mod.rs") || attributes.path.is_some();
        let folder = if is_folders { folder_of(&path) } else { format!("{folder}{name}/") };
        Reader {
            crate_: &mut *self.crate_,
            read_file: self.read_file,
            tokens: &tokens(&source),
            at: 0,
        }
        .module(child, folder);
    }

    fn add(&mut self, parent: usize, name: &str, file: String) -> usize {
        let child = self.crate_.modules.len();
        self.crate_.modules.push(Module { file, parent, ..Module::default() });
        self.crate_.modules[parent].children.insert(name.into(), child);
        child
    }

    /// Reads `pub` with any visibility and a `use` after it, or a `use` alone. Returns whether
    /// there was a `use`.
    fn visible(&mut self, module: usize) -> bool {
        let is_re_export = self.skip_visibility();
        if self.name(0) != Some("use") {
            return false;
        }
        self.at += 1;
        let mut imports = Vec::new();
        self.use_tree(&[], is_re_export, &mut imports);
        self.crate_.modules[module].imports.extend(imports);
        true
    }

    /// Skips a `pub` with any visibility. Returns whether there was one.
    fn skip_visibility(&mut self) -> bool {
        let is_there = self.name(0) == Some("pub");
        if is_there {
            self.at += 1;
            if self.is_mark(0, '(') {
                self.skip_group();
            }
        }
        is_there
    }

    /// Reads one branch of a `use`, up to the mark that ends it.
    fn use_tree(&mut self, prefix: &[String], is_re_export: bool, imports: &mut Vec<Import>) {
        let mut path = prefix.to_vec();
        loop {
            match self.peek(0) {
                Some(Token::Name("as")) => {
                    let name = self.name(1).map(str::to_string);
                    self.at += 2;
                    imports.push(Import { path, name, is_re_export });
                    return;
                }
                Some(Token::Name(name)) => path.push(name.into()),
                // `$crate`.
                Some(Token::PathSeparator | Token::Mark('$')) => {}
                Some(Token::Mark('*')) => {
                    self.at += 1;
                    imports.push(Import { path, name: None, is_re_export });
                    return;
                }
                Some(Token::Mark('{')) => {
                    self.at += 1;
                    while self.peek(0).is_some_and(|token| token != Token::Mark('}')) {
                        let before = self.at;
                        self.use_tree(&path, is_re_export, imports);
                        // A macro repetition is no branch, and is skipped.
                        let is_stuck = self.at == before;
                        self.at += usize::from(self.is_mark(0, ',') || is_stuck);
                    }
                    self.at += 1;
                    return;
                }
                _ => {
                    // `a::{self}` is `a`.
                    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                        path.pop();
                    }
                    let name = path.last().cloned();
                    imports.push(Import { path, name, is_re_export });
                    return;
                }
            }
            self.at += 1;
        }
    }

    /// Reads a word of the code: it defines an item, or begins a path.
    fn word(&mut self, module: usize, word: &str, is_at_module: bool, attributes: &Attributes) {
        const DEFINING: [&str; 8] =
            ["struct", "enum", "trait", "union", "type", "fn", "const", "static"];
        let behind_path = self.at > 0
            && matches!(self.tokens[self.at - 1], Token::PathSeparator | Token::Mark('.'));
        self.at += 1;
        if is_at_module
            && DEFINING.contains(&word)
            && let Some(name) = self.name(0)
        {
            if name != "fn" && name != "mut" {
                self.crate_.modules[module].items.insert(name.into());
                self.at += 1;
            }
            return;
        }
        if word == "macro_rules"
            && self.is_mark(0, '!')
            && let Some(name) = self.name(1)
        {
            if attributes.is_exported {
                self.crate_.exported_macros.insert(name.into(), module);
            }
            self.crate_.modules[module].items.insert(name.into());
            self.at += 2;
            return;
        }
        if behind_path {
            return;
        }
        let mut path = vec![word.to_string()];
        while self.peek(0) == Some(Token::PathSeparator)
            && let Some(name) = self.name(1)
        {
            path.push(name.into());
            self.at += 2;
        }
        let module = &mut self.crate_.modules[module];
        module.mentions.insert(word.into());
        if path.len() > 1 {
            module.paths.insert(path);
        }
    }
}

/// The folder of a file: empty, or with a trailing slash.
fn folder_of(file: &str) -> String {
    file.rfind('/').map_or(String::new(), |slash| file[..=slash].into())
}
