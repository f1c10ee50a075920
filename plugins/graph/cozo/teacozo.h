// The C ABI of src/lib.rs.
#ifndef TEACOZO_H
#define TEACOZO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct teacozo teacozo;

typedef struct {
	uint8_t *data;
	size_t length;
	size_t capacity;
	bool ok;
} teacozo_reply;

typedef struct {
	const uint8_t *script;
	size_t script_length;
	const uint8_t *params;
	size_t params_length;
	uint64_t token;
	uint64_t timeout_ms;
	uint64_t memory;
	uint64_t rows;
	bool write;
} teacozo_query_arguments;

void teacozo_free(teacozo_reply reply);
teacozo_reply teacozo_open(const uint8_t *path, size_t length, const teacozo **database);
teacozo_reply teacozo_close(const teacozo *database);
teacozo_reply teacozo_run(const teacozo *database, const uint8_t *script, size_t script_length, const uint8_t *params, size_t params_length);
teacozo_reply teacozo_lookup(const teacozo *database, const uint8_t *request, size_t length);
teacozo_reply teacozo_having(const teacozo *database, const uint8_t *request, size_t length);
teacozo_reply teacozo_apply(const teacozo *database, const uint8_t *batch, size_t length);
teacozo_reply teacozo_query(const teacozo *database, const teacozo_query_arguments *arguments);
void teacozo_cancel(const teacozo *database, uint64_t token);
teacozo_reply teacozo_backup(const teacozo *database, const uint8_t *path, size_t length);

#endif
