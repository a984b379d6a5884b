{
  apps = [ "auth" "outline" "wiki" ];
  control-plane = [ "metrics" ];
  control-plane-write = [ ];
}
