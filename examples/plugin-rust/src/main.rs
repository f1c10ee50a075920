use std::process::ExitCode;

fn main() -> ExitCode {
    plugin::tea::serve(plugin::actions::bundle())
}
