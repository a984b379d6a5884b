{
  apps = [ "auth" "outline" "wiki" ];
  control-plane = [ "metrics" ];
}
