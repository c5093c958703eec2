#!/bin/sh
echo edited
