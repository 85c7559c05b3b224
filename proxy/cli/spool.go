package cli

type spoolCmd struct{}
