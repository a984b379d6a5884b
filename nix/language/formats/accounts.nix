# The formats of accounts and systemd units.
let
  inherit (builtins)
    isInt
    isString
    stringLength
    substring
    ;
  inherit (import ../types) matches scalar;

  # Accounts of Florete itself read the keys of the whole host.
  account = scalar {
    want = "an account name, none of Florete's own";
    hint = "write the name as in /etc/passwd";
    example = "wiki";
    ok =
      v:
      matches "[A-Za-z_][A-Za-z0-9_.-]{0,31}" v
      && (substring 0 7 v != "florete" || !matches "florete([_-].*)?" v);
  };

  caller = scalar {
    want = "an account name, a uid or the name of a system service";
    json.anyOf = [
      { type = "string"; }
      {
        type = "integer";
        minimum = 0;
        maximum = 4294967294;
      }
    ];
    hint = "write a name in quotes, \"wiki.service\" for a unit, or a number without them";
    ok =
      v:
      isInt v && v >= 0 && v < 4294967295
      || matches "[A-Za-z_][A-Za-z0-9_.-]{0,31}" v && !isOtherUnit v
      || isService v;
  };

  # Units that run no program. No account has such a name.
  isOtherUnit = matches ".*\\.(automount|device|mount|path|scope|slice|socket|swap|target|timer)";
  # A systemd service, recognized by its ending, which no account has.
  isService =
    v:
    isString v
    && stringLength v > 8
    && stringLength v <= 255
    && substring (stringLength v - 8) 8 v == ".service"
    && matches "[A-Za-z0-9:_.@\\-]+\\.service" v;

  # Restarting some units stops the whole host.
  unit = scalar {
    want = "a systemd unit that the host outlives";
    hint = "write its full name, such as \"wiki.service\"";
    example = "wiki.service";
    ok =
      v:
      isString v
      && stringLength v <= 255
      && matches "[A-Za-z0-9:_.@\\-]+\\.(service|socket|target|timer|path)" v
      && !matches "(systemd-)?(basic|default|emergency|exit|graphical|halt|hibernate|hybrid-sleep|kexec|multi-user|poweroff|reboot|rescue|shutdown|sleep|soft-reboot|suspend|suspend-then-hibernate|sysinit|umount|runlevel[0-6]|ctrl-alt-del)\\.(service|target)" v;
  };
in
{
  inherit
    account
    caller
    isService
    unit
    ;
}
