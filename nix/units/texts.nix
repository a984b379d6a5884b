# How units, accounts and settings of the kernel are written as files. sysctl has the settings that
# QUIC needs, and text writes a value of a directive.
{ sysctl, text }:
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    filter
    isList
    toJSON
    ;

  directives =
    set:
    concatMap (n: map (v: "${n}=${text v}\n") (if isList set.${n} then set.${n} else [ set.${n} ])) (
      attrNames set
    );

  order = [
    "Unit"
    "Service"
    "Path"
    "Timer"
    "Socket"
    "Install"
  ];
in
{
  # A unit as the text of its file.
  render =
    unit:
    concatStringsSep "\n" (
      map (section: "[${section}]\n" + concatStringsSep "" (directives unit.${section})) (
        filter (section: unit ? ${section}) order
      )
    );

  # Accounts as the text of a sysusers.d(5) file.
  sysusers =
    accounts:
    concatStringsSep "" (
      map (n: "u ${n} - ${toJSON accounts.${n}.description} ${accounts.${n}.home}\n") (attrNames accounts)
    );

  # The same as the text of a sysctl.d(5) file, with what NixOS sets anyway: each path
  # unit is one of the watches that root may have, 128 elsewhere. What the kernel does
  # not have here, as in a container, is no failure.
  sysctls =
    let
      settings = sysctl // {
        "fs.inotify.max_user_instances" = 524288;
      };
    in
    concatStringsSep "" (map (n: "-${n} = ${text settings.${n}}\n") (attrNames settings));
}
