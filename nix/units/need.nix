# Starts when a need is fulfilled for the first time, and then at each boot.
# common -> needID -> Units
common:
let
  inherit (common) current unit;
in
id: {
  ${unit "need-${id}.path"} = {
    Unit.Description = "Wait until the need ${id} is fulfilled";
    Path = {
      PathExists = current id;
      Unit = unit "need-${id}.target";
    };
    Install.WantedBy = [ "paths.target" ];
  };
  ${unit "need-${id}.target"}.Unit.Description = "The need ${id} is fulfilled";
}
