{ flake, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = flake;
    hostName = "drhorrible";
  };
}
