package cli

import (
	"github.com/alecthomas/kong"

	"postern/proxy/cli/guide"
)

// describe turns the command line's own description into one that completions and the man page are made from.
func describe(node *kong.Node) guide.Command {
	c := guide.Command{Name: node.Name, Help: node.Help, Detail: node.Detail}
	for _, flag := range node.Flags {
		if !flag.Hidden && flag.Name != "help" { // every command has that one
			c.Flags = append(c.Flags, describeFlag(flag))
		}
	}
	for _, arg := range node.Positional {
		c.Arguments = append(c.Arguments, guide.Argument{
			Name: arg.Name, Help: arg.Help, Words: words(arg), Optional: !arg.Required, Many: arg.IsCumulative(),
		})
	}
	for _, child := range node.Children {
		if !child.Hidden {
			c.Commands = append(c.Commands, describe(child))
		}
	}
	return c
}

func describeFlag(flag *kong.Flag) guide.Flag {
	out := guide.Flag{Name: flag.Name, Short: flag.Short, Help: helpText(flag.Value)}
	if !flag.IsBool() {
		out.Value, out.Words = flag.FormatPlaceHolder(), words(flag.Value)
	}
	return out
}

func words(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// described describes the whole program.
func (s *session) described() (guide.Command, error) {
	parser, err := newParser(s, s.out.Writer, s.err.Writer)
	if err != nil {
		return guide.Command{}, err
	}
	root := describe(parser.Model.Node)
	root.Help, root.Detail = "deliver postbacks and webhooks from beside the application", description
	return root, nil
}
