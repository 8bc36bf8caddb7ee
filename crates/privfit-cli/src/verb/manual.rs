//! `privfit completions` and `privfit man`: help for the shell and for `man`, from the same source as `--help`.

use crate::Arguments;
use crate::ui::Failure;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "Examples:
  privfit completions bash > ~/.local/share/bash-completion/completions/privfit
  privfit completions zsh > ~/.zfunc/_privfit
  privfit completions fish > ~/.config/fish/completions/privfit.fish
  privfit completions powershell >> $PROFILE")]
pub(crate) struct Completions {
    /// Shell that the script is for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "privfit", &mut script);
        crate::ui::print_line(String::from_utf8_lossy(&script).trim_end());
        Ok(())
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  privfit man | man -l -
  privfit man --out ~/.local/share/man/man1     # one page for the whole and one for each verb")]
pub(crate) struct Man {
    /// Directory for the pages; without it the page of the whole is printed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut whole = Arguments::command();
        whole.build();
        let Some(directory) = &self.out else {
            let page = page(&whole, "privfit").map_err(|e| failed("the page", &e))?;
            crate::ui::print_line(String::from_utf8_lossy(&page).trim_end());
            return Ok(());
        };
        std::fs::create_dir_all(directory).map_err(|e| failed(&directory.display().to_string(), &e))?;
        let written = write_pages(&whole, "privfit", directory)?;
        crate::ui::note(&format!("wrote {written} pages to {}", directory.display()));
        Ok(())
    }
}

fn failed(what: &str, error: &std::io::Error) -> Failure {
    Failure::misuse(format!("cannot write {what}: {error}; give another directory to --out"))
}

/// The page of a command and of everything below it.
fn write_pages(command: &Command, name: &str, directory: &Path) -> Result<usize, Failure> {
    let path = directory.join(format!("{name}.1"));
    let text = page(command, name).map_err(|e| failed(&path.display().to_string(), &e))?;
    std::fs::write(&path, text).map_err(|e| failed(&path.display().to_string(), &e))?;
    let mut written = 1;
    for sub in command.get_subcommands().filter(|s| s.get_name() != "help") {
        written += write_pages(sub, &format!("{name}-{}", sub.get_name()), directory)?;
    }
    Ok(written)
}

/// One page. Examples keep their line breaks, which the generator would not keep.
fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let examples = command.get_after_long_help().or(command.get_after_help()).map(|t| t.to_string());
    let whole = command.clone().display_name(name.to_string()).after_help("").after_long_help("");
    let man = clap_mangen::Man::new(whole)
        .title(name.to_uppercase())
        .section("1")
        .manual("privfit")
        .source(privfit::training::program());
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    if command.get_arguments().any(|a| !a.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    if let Some(text) = examples {
        writeln!(out, ".SH EXAMPLES\n.nf")?;
        for line in text.lines().skip_while(|l| *l == "Examples:" || *l == "Example:") {
            writeln!(out, "{}", escaped(line))?;
        }
        writeln!(out, ".fi")?;
    }
    if name != "privfit" {
        writeln!(out, ".SH \"SEE ALSO\"\n.BR privfit (1)")?;
    }
    Ok(out)
}

/// A line of text as roff takes it.
fn escaped(line: &str) -> String {
    let plain = line.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\(ga").replace('\'', "\\(aq").replace('^', "\\(ha");
    if plain.starts_with(['.', '\'']) { format!("\\&{plain}") } else { plain }
}
