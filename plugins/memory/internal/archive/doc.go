// Package archive writes the contents of a memory to a portable file and reads
// it back into any store. Start with [Export] and [Import].
//
// An archive is a compressed tar file. tea-memory.json comes first, with format and version. The records follow in
// pages, records/000001.jsonl and so on, one record per line, with the contents of files before the page that names
// them as contents/SHA256. Tables follow as tables/NAME.json with the definition and pages tables/NAME/000001.jsonl.
// end.json is last, with the number of the entries and a SHA-256 of their names and data. Export and Import hold one
// page in memory, whatever the size of the archive.
package archive
