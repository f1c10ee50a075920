//! Writes opendal-glue.js and opendal-glue_bg.wasm for a compiled module. It is wasm-bindgen's
//! command line without its test runner, which would double the build.

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, directory] = &arguments[..] else {
        anyhow::bail!("usage: bindgen MODULE DIRECTORY");
    };
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(module)
        .out_name("opendal-glue")
        .web(true)?
        .typescript(false)
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(directory)
}
