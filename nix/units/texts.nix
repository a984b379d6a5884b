# Units, accounts and kernel settings as files. sysctl contains the settings that QUIC needs, and
# text writes the value of a directive.
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

  # Kernel settings as the text of a sysctl.d(5) file, with some that NixOS sets anyway: each path
  # unit uses an inotify instance of root, of which other systems permit 128. A setting that the
  # kernel lacks, as in a container, is no failure.
  sysctls =
    let
      settings = sysctl // {
        "fs.inotify.max_user_instances" = 524288;
      };
    in
    concatStringsSep "" (map (n: "-${n} = ${text settings.${n}}\n") (attrNames settings));
}
