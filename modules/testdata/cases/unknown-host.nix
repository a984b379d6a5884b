{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete.cluster = flake;
  networking.hostName = "ursla";
}
