//! Compiler errors for a composed machine with an unsuitable part.

use std::process::Command;

/// Compiles a program that composes this part; returns the lines that the compiler reports.
fn lines_reported(part: &str) -> Vec<u32> {
    let program = format!(
        "#![allow(dead_code)]
         use rotor_core::*;
         struct Shared;
         struct Good;
         impl Machine for Good {{
             type Context = Shared;
             type Seed = Infallible;
         }}
         struct Other;
         impl Machine for Other {{
             type Context = u32;
             type Seed = Infallible;
         }}
         rotor_compose! {{
             enum App / AppSeed <Shared> {{
                 Good(Good),
                 Part({part}),
             }}
         }}
         fn main() {{}}
"
    );
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(format!("compose_{}.rs", part.to_lowercase()));
    std::fs::write(&path, program).expect("the directory is there");
    let artifacts = std::env::current_exe().expect("it runs");
    let artifacts = artifacts.parent().expect("it is in a directory");
    let core = std::fs::read_dir(artifacts).expect("it is a directory").filter_map(Result::ok);
    let core = core.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("librotor_core-") && name.ends_with(".rlib")
    });
    let core = core.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition", "2024", "--emit", "metadata", "--error-format", "short", "--out-dir"])
        .arg(directory)
        .arg("--extern")
        .arg(format!("rotor_core={}", core.expect("the crate was built for this test").display()))
        .arg("-L")
        .arg(format!("dependency={}", artifacts.display()))
        .arg(&path)
        .output()
        .expect("there is a compiler");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors = text.lines().filter(|line| line.contains(": error"));
    errors.filter_map(|line| line.split(".rs:").nth(1)?.split(':').next()?.parse().ok()).collect()
}

#[test]
fn a_wrong_part_is_reported_at_the_part_and_not_in_every_method() {
    const LINE_OF_THE_PART: u32 = 17;
    const LINE_OF_THE_WHOLE: u32 = 14;
    assert_eq!(lines_reported("Good"), [0; 0], "the program is right but for the part");
    // The error that is reported last is the one directly above the prompt.
    assert_eq!(lines_reported("Other"), [LINE_OF_THE_WHOLE, LINE_OF_THE_PART], "another context");
    let whole = LINE_OF_THE_WHOLE;
    assert_eq!(lines_reported("String"), [whole, whole, LINE_OF_THE_PART], "no machine");
}
