// Package configs turns a YAML file, flags and the environment into one checked Config, and keeps the files we ship.
//
// It promises that a Config which Load returned without an error can be run as it stands: every value is in range,
// every referenced file was there and readable, every secret is resolved, every endpoint carries its complete policy.
// Mistakes are reported all at once, each with file, line, column, the path of its key, and what would be right. No
// error repeats a secret, a URL, or the value of a header.
//
// Each setting is declared once, in fields.go or fields_policy.go: its name, its sentence of documentation, its type,
// its bounds, and whether it needs a restart. Load, Show, RestartOnly and Reference all walk that one table.
//
// Where settings come from, the first that is there wins: flags (Options), the file, the defaults. The file is the one
// named by --config, else by POSTERN_CONFIG, else ./postern.yaml if it exists. POSTERN_DATA, POSTERN_LISTEN and
// POSTERN_ADMIN_LISTEN are defaults of the flags of the same names and belong to the command line. POSTERN_SYNC_DSN is
// what sync.dsn is read from where the file does not set it. Other variables are read only where the file names them
// as ${VAR}.
//
// Relative paths: spool.dir and Unix sockets are relative to the working directory, like the flags that replace them;
// everything that the file refers to (file:PATH, token_file, tls) is relative to the file.
//
// It leaves out: watching files (the program reloads on SIGHUP), and building anything from the settings.
package configs
