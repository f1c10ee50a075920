//! What a query of a user must not do. The engine's parser has read the script;
//! these functions walk its syntax tree.

use cozo::data::program::InputProgram;
use cozo::parse::{CozoScript, ImperativeProgram, ImperativeStmt};
use either::Either;

use crate::failure::Failure;

/// MAX_SCRIPT and MAX_NESTING bound the recursion of the parser, which has
/// STACK bytes: the deepest script of that length fits (see the tests).
pub const MAX_SCRIPT: usize = 64 << 10;
pub const MAX_NESTING: usize = 200;
pub const STACK: usize = 256 << 20;

/// check_size refuses scripts that could exhaust the parser's stack or time.
pub fn check_size(script: &str) -> Result<(), Failure> {
    if script.len() > MAX_SCRIPT {
        return Err(Failure::TooComplex(format!(
            "the query has {} bytes, the limit is {MAX_SCRIPT}: pass data as params",
            script.len()
        )));
    }
    let (mut depth, mut deepest) = (0usize, 0usize);
    for b in script.bytes() {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MAX_NESTING {
        return Err(Failure::TooComplex(format!(
            "the query has {deepest} levels of brackets, the limit is {MAX_NESTING}"
        )));
    }
    Ok(())
}

/// check refuses what a query must not do, and limits its rows. The storage of a
/// read-only query refuses all writes.
pub fn check(script: &mut CozoScript, rows: usize) -> Result<(), Failure> {
    match script {
        CozoScript::Single(program) => {
            check_program(program)?;
            // One row more than the limit shows that there are more.
            let most = rows.saturating_add(1);
            program.out_opts.limit = Some(program.out_opts.limit.map_or(most, |n| n.min(most)));
            Ok(())
        }
        CozoScript::Imperative(block) => check_block(block),
        CozoScript::Sys(_) => Err(Failure::Refused { what: "a system operator (::)" }),
    }
}

fn check_block(block: &ImperativeProgram) -> Result<(), Failure> {
    for statement in block {
        match statement {
            ImperativeStmt::Program { prog } | ImperativeStmt::IgnoreErrorProgram { prog } => check_program(&prog.prog)?,
            ImperativeStmt::SysOp { .. } => {
                return Err(Failure::Refused { what: "a system operator (::)" })
            }
            ImperativeStmt::TempDebug { .. } => return Err(Failure::Refused { what: "%debug" }),
            ImperativeStmt::Return { returns } => {
                for value in returns {
                    if let Either::Left(clause) = value {
                        check_program(&clause.prog)?;
                    }
                }
            }
            ImperativeStmt::If { condition, then_branch, else_branch, .. } => {
                if let Either::Right(clause) = condition {
                    check_program(&clause.prog)?;
                }
                check_block(then_branch)?;
                check_block(else_branch)?;
            }
            ImperativeStmt::Loop { body, .. } => check_block(body)?,
            ImperativeStmt::Break { .. } | ImperativeStmt::Continue { .. } | ImperativeStmt::TempSwap { .. } => {}
        }
    }
    Ok(())
}

/// OWN are the relations of the graph, which its actions keep consistent.
const OWN: [&str; 5] = ["entity", "relation", "word", "namespace", "meta"];

fn check_program(program: &InputProgram) -> Result<(), Failure> {
    if program.out_opts.sleep.is_some() {
        return Err(Failure::Refused { what: ":sleep" });
    }
    // The engine keeps the name to itself; it writes the options of the tree as
    // lines, such as ":put entity {...".
    let options = program.out_opts.to_string();
    for line in options.lines() {
        let mut words = line.split(' ').skip(1);
        if words.next().is_some_and(|name| OWN.contains(&name)) && words.next().is_some_and(|w| w.starts_with('{')) {
            return Err(Failure::Refused { what: "a change of the relations of the graph, which its actions change," });
        }
    }
    Ok(())
}
