# Files of services that must not be in a repository.
let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    filter
    head
    stringLength
    ;
  inherit (import ../language/types)
    between
    default
    named
    of
    record
    required
    ;
  inherit (import ../language/formats)
    mode
    reference
    strings
    unit
    ;

  file = record "a file" {
    ref = required "Name of the file at `providers.file`." "\"wiki/smtp-password\"" reference;
    mode = default "Permissions of the file on the host." "0400" mode;
    generation =
      default "Raise it when the file at the provider has changed. Hosts fetch it anew." 1
        (between 1 1000000 "a generation");
    restart = of "Unit to restart after the file was fetched anew." unit;
    dependsOn = of "Needs of this host that must be fulfilled first." strings;
  };
in
{
  doc = "Distributes files that do not belong in a repository.";
  port = 2;
  alone = "a file that was replaced on one of them would be fetched as it was from another";
  operated = true;
  settings = { };
  service.files =
    of
      "Files, secret or not, from `providers.file`, delivered as `needs/file-<service>-<file>/current/<file>`."
      (named { what = "file"; } file);

  reasons =
    clean:
    map (s: "services.${s.name}.files needs it") (
      filter (s: s.files != { }) (attrValues clean.services)
    );

  needs =
    t: host:
    concatMap (
      service:
      map (
        n:
        let
          file = service.files.${n};
        in
        {
          id = "file-${service.name}-${n}";
          for = service.idOn host.name;
          request = { inherit (file) ref; };
          files.${n} = {
            value = "content";
            inherit (file) mode;
          };
          owner = service.user;
          inherit (file) restart dependsOn generation;
          place = "services.${service.name}.files.${n}";
          what = "file ${n} of service ${service.name}";
        }
      ) (attrNames service.files)
    ) host.wanting;

  label = need: "file-${head (attrNames need.deliver.files)}";

  check = { lib, ... }: {
    service =
      n: s:
      concatMap (
        f:
        lib.when (stringLength n + stringLength f > 57) [
          (lib.fault {
            id = "FL025";
            place = "services.${n}.files.${f}";
            problem = "names of service and file together have at most 57 characters, these";
            value = toString (stringLength n + stringLength f);
            remedy = "shorten one of them";
          })
        ]
      ) (attrNames s.files);
  };
}
