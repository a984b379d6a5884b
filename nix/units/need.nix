# Reached when a need is fulfilled for the first time, and at each boot after that.
let
  inherit (import ./parts.nix) current;
in
id:
{
  "florete-need-${id}.path" = {
    Unit.Description = "Wait until the need ${id} is fulfilled";
    Path = { PathExists = current id; Unit = "florete-need-${id}.target"; };
    Install.WantedBy = [ "paths.target" ];
  };
  "florete-need-${id}.target".Unit.Description = "The need ${id} is fulfilled";
}
