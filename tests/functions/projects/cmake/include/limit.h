#define LIMIT 2
